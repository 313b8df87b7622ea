"""What all rooms use: money, phone numbers, times, codes, hosts, and how texts are masked."""
