"""A receiver that acknowledges every callback; a GET returns their number."""

import asyncio
import sys

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Receiver(asyncio.Protocol):
    """The least HTTP that works, so that the receiver costs little."""

    taken = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._buffer = b""

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, body = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        if head.startswith(b"GET"):
            count = str(Receiver.taken).encode()
            self._transport.write(
                b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s"
                % (len(count), count)
            )
            self._transport.close()
            return
        start = head.lower().index(b"content-length:") + len(b"content-length:")
        if len(body) >= int(head[start:].split(b"\r\n", 1)[0]):
            self._buffer = b""
            Receiver.taken += 1
            self._transport.write(ANSWER)


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
