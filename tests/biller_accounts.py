"""The billers of sandbox rule 7 and how their accounts begin, as the interface lists them."""

LEADING = {
    "GOT": "100",
    "GTM": "101",
    "DST": "102",
    "MPO": "103",
    "MPP": "104",
    "VPO": "105",
    "VPP": "106",
    "SFL": "107",
    "TLS": "108",
    "STT": "109",
    "ECG": "200",
    "VBB": "201",
    "BXO": "202",
    "EPP": "203",
    "GHW": "204",
    "SCP": "205",
    "WRE": "206",
}
