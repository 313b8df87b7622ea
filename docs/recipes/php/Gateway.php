<?php

final class Gateway
{
    private function __construct(public readonly string $url, private $process)
    {
    }

    public static function start(string ...$settings): self
    {
        $command = ['sandbox-sim', 'serve', '--json', '--port', '0', '--store', 'memory:'];
        foreach ($settings as $setting) {
            array_push($command, '--set', $setting);
        }
        $process = proc_open($command, [1 => ['pipe', 'w'], 2 => STDERR], $pipes);
        $line = fgets($pipes[1]);
        if ($line === false) {
            throw new RuntimeException('the gateway did not start');
        }
        return new self(json_decode($line, flags: JSON_THROW_ON_ERROR)->url, $process);
    }

    /** A request of the gateway's own interface. */
    public function pay(string $path, array $body): array
    {
        $credentials = base64_encode('sandbox_key:sandbox_secret');
        return $this->send('POST', $path, $body, ["Authorization: Basic $credentials"]);
    }

    /** A request of the control API: clock, overrides, faults, callbacks … */
    public function control(string $method, string $path, ?array $body = null): array
    {
        return $this->send($method, "/_sandbox/$path", $body);
    }

    /** The newest callbacks that came into a built-in inbox, oldest first. */
    public function inbox(string $name): array
    {
        return array_reverse($this->control('GET', "inbox/$name/messages?limit=100")['messages']);
    }

    public function stop(): void
    {
        proc_terminate($this->process);
        proc_close($this->process);
    }

    private function send(string $method, string $path, ?array $body, array $headers = []): array
    {
        $context = stream_context_create(['http' => [
            'method' => $method,
            'header' => ['Content-Type: application/json', 'User-Agent: tests', ...$headers],
            'content' => $body === null ? '' : json_encode($body),
            'ignore_errors' => true, // a body comes with 4xx and 5xx too
        ]]);
        $answer = file_get_contents($this->url . $path, context: $context);
        return json_decode($answer, true, flags: JSON_THROW_ON_ERROR);
    }
}
