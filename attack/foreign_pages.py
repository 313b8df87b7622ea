"""What pages of other sites may do on the gateway's own paths, and the session cookie (D42)."""

from typing import Final

from attack.plan import Plan
from attack.results import Result, none_of
from attack.servers import Server, serving
from attack.wire import exchange, request_bytes
from tests.kit.requests import OPERATIONS

_TOKEN: Final = "token-of-the-attack"  # noqa: S105 -- of a server that lives for a second
_OWN_HOST: Final = b"Host: 127.0.0.1"
_LISTED: Final = "pay.example"
_FOREIGN_HOSTS: Final = (
    *(b"rebound.example", b"rebound.example:80", b"127.0.0.1.rebound.example", b"localhost.evil"),
    *(b"localhost@rebound.example", b"127.0.0.1, rebound.example", b"[::1].example", b"10.0.0.1"),
)
# Browsers send Origin with every POST of a page, so the gateway's paths look at no other header.
_FOREIGN_PAGES: Final = (
    *(b"Origin: https://elsewhere.example", b"Origin: null", b"Origin: http://127.0.0.1:1"),
    *(b"Origin: http://127.0.0.1.elsewhere.example", b"Origin: file://", b"Origin: x"),
    *(b"Origin: ", b"Origin: http://pay.example.evil"),
)
# Programs send no Origin; a listed host may have pages and names.
_OWN: Final = (
    *(b"X-A: b", b"Sec-Fetch-Site: same-origin", b"Origin: http://127.0.0.1"),
    *(b"Origin: https://pay.example", b"Sec-Fetch-Site: none"),
)
_OWN_HOSTS: Final = (b"localhost", b"[::1]", b"127.0.0.1:8233", b"pay.example")
_FLAGS: Final = ("HttpOnly", "Secure", "SameSite=Strict", "Path=/_sandbox")


async def attack(plan: Plan) -> list[Result]:
    """Each header on each operation, with credentials, so that nothing else refuses it."""
    log = plan.directory / "pages.log"
    async with serving(log, f'allowed_hosts=["{_LISTED}"]') as server:
        foreign, own = [
            [await _answer(server, name, each) for name in OPERATIONS for each in headers]
            for headers in (
                (*_FOREIGN_PAGES, *(b"Host: " + host for host in _FOREIGN_HOSTS)),
                (*_OWN, *(b"Host: " + host for host in _OWN_HOSTS)),
            )
        ]
    let_in = [what for what, refused in foreign if not refused]
    kept_out = [what for what, refused in own if refused]
    missing = await _missing_flags(plan)
    return [
        none_of("requests with a foreign Origin or Host, let in:", let_in, len(foreign)),
        none_of("requests of programs and listed hosts, refused:", kept_out),
        none_of("session cookie behind tls_terminated, without", missing, len(_FLAGS)),
    ]


async def _answer(server: Server, name: str, header: bytes) -> tuple[str, bool]:
    """What was sent and answered, and whether that is a refusal of the page or the name."""
    operation = OPERATIONS[name]
    raw = request_bytes(operation.path, operation.body)
    if header.startswith(b"Host:"):
        raw = raw.replace(_OWN_HOST, header)
    else:
        raw = raw.replace(_OWN_HOST, _OWN_HOST + b"\r\n" + header)
    answer = await exchange(server.port, raw)
    refused = answer.status in {400, 403} and answer.headers.get("x-sandbox-rule") == "D42"
    return f"{name}, {header.decode()}: HTTP {answer.status}", refused


async def _missing_flags(plan: Plan) -> list[str]:
    """The flags that the cookie of a login does not have."""
    token = f"control_token={_TOKEN}"
    async with serving(plan.directory / "login.log", token, "tls_terminated=true") as server:
        form = request_bytes(
            "/_sandbox/login",
            f"token={_TOKEN}".encode(),
            b"Content-Type: application/x-www-form-urlencoded",
            credentials=False,
        )
        answer = await exchange(server.port, form)
    flags = {each.strip() for each in answer.headers.get("set-cookie", "").split(";")}
    return [flag for flag in _FLAGS if flag not in flags]
