"""The format of the log on stderr: text for people, or JSON lines for machines."""

import json
import logging
import sys
from typing import Any, Literal

from sandbox_sim.values.redaction import printable, printable_json, redact_text


class _Formatter(logging.Formatter):
    def formatException(self, ei: Any) -> str:  # noqa: N802 -- logging's name
        """The traceback, redacted, because exceptions may quote secrets (D38)."""
        return redact_text(super().formatException(ei))


class TextFormatter(_Formatter):
    """One line for each record; only a traceback takes more."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 -- logging's name
        """The line, with control characters made visible."""
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:  # noqa: N802 -- logging's name
        """The traceback, with control characters made visible in each line."""
        return "\n".join(map(printable, super().formatException(ei).split("\n")))


class JsonFormatter(_Formatter):
    """One JSON object for each record; the facts of a request or an attempt are its fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        document: dict[str, object] = {
            "at": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        document.update(getattr(record, "facts", {}))
        if record.exc_info:
            document["traceback"] = self.formatException(record.exc_info)
        return printable_json(json.dumps(document, ensure_ascii=False, default=str))


def configure(level: str, style: Literal["text", "json"]) -> None:
    """Send the log of the program to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("sandbox_sim").setLevel(level.upper())
    # No line shows these values, and collecting them takes as long as writing the line.
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False
