"""What is known beside a document: the folder that is worked in, its settings, its Python files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

from irtool.ir.dataclass import dataclass
from irtool.linting.registry import all_rules
from irtool.linting.settings import Settings, SettingsError, chosen_rules, read_settings
from irtool.linting.sources import SourceFiles


@dataclass(frozen=True, eq=False)
class Project:
    """A folder and what its ``irtool.toml`` says.

    Attributes:
        folder: the editor's; the current one where there is none.
        context: keys of ``set_auto_parallel_context``.
        lint: the table ``[lint]``.
        settings_path: of the ``irtool.toml``; "" where there is none.
        trouble: why the settings could not be read; "" where they could.
    """

    folder: str = field(default_factory=os.getcwd)
    context: Mapping[str, object] = field(default_factory=dict[str, object])
    lint: Mapping[str, object] = field(default_factory=dict[str, object])
    settings_path: str = ""
    trouble: str = ""

    @cached_property
    def settings(self) -> Settings:
        """The settings of the linter.

        Raises:
            SettingsError: one of them makes no sense.
        """
        settings = read_settings(self.lint, os.path.dirname(self.settings_path))
        chosen_rules(settings, all_rules())
        return settings

    @cached_property
    def sources(self) -> SourceFiles:
        """The Python files that dumps name, each looked for once; :meth:`fresh` forgets them."""
        try:
            mapping = self.settings.source_map
        except SettingsError:  # which the diagnostics tell
            mapping = ()
        return SourceFiles(mapping, self.folder)

    def fresh(self) -> Project:
        """This project with nothing known of files yet: they may have changed."""
        return replace(self)

    def python_file(self, path: str) -> str | None:
        """The file here that a dump's path means, absolute; None where it is not here."""
        file = self.sources.find(path)
        return None if file is None else os.path.abspath(os.path.join(self.folder, file))
