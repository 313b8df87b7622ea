"""Every text of the pages, in one place: english.toml.

A second language is a second file of the same keys, read in its place. The gateway's own sentences
are not here: a reason, a verdict or an error is part of the interface or of the control API.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from functools import cache, cached_property
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from markupsafe import Markup

ENGLISH: Final = "english.toml"
# The section that the scripts get.
_OF_SCRIPTS: Final = "script."
_CODE: Final = re.compile(r"`([^`]*)`")

# A text, or the two forms of a text that depends on a count.
Entry = str | Mapping[str, str]


class Texts:
    """The texts of one language, by key: `section.name`.

    entries: all of them; None reads the English ones, when the first page is asked for.
    """

    def __init__(self, entries: Mapping[str, Entry] | None = None) -> None:
        self._given = entries
        self._markup: dict[str, Markup] = {}

    @cached_property
    def entries(self) -> Mapping[str, Entry]:
        """Every text by its key."""
        return read(ENGLISH) if self._given is None else self._given

    def __call__(self, key: str, /, **values: object) -> str:
        """The text with its values filled in. Raises `KeyError` for a key that there is not."""
        return self._form(key, values).format_map(values)

    def markup(self, key: str, /, **values: object) -> "Markup":
        """The text for a template: values are escaped, and `backticks` become code."""
        form = self._form(key, values)
        found = self._markup.get(form)
        if found is None:
            found = self._markup[form] = _marked(form)
        return found.format(**values) if values else found

    def of_scripts(self) -> str:
        """The texts of the scripts as a JSON object, by their names."""
        named = {
            key.removeprefix(_OF_SCRIPTS): entry
            for key, entry in self.entries.items()
            if key.startswith(_OF_SCRIPTS)
        }
        return json.dumps(named, ensure_ascii=False)

    def _form(self, key: str, values: Mapping[str, object]) -> str:
        entry = self.entries[key]
        if isinstance(entry, str):
            return entry
        return entry["one" if values["count"] == 1 else "other"]


@cache
def read(name: str) -> Mapping[str, Entry]:
    """The texts of a file in this folder, which is read once."""
    sections = tomllib.loads((files(__name__) / name).read_text("utf-8"))
    return MappingProxyType(
        {
            f"{section}.{name}": entry
            for section, entries in sections.items()
            for name, entry in entries.items()
        }
    )


def _marked(form: str) -> "Markup":
    from markupsafe import Markup, escape  # noqa: PLC0415 -- comes with Jinja2, when it is needed

    return Markup(_CODE.sub(r"<code>\1</code>", str(escape(form))))  # noqa: S704 -- is escaped
