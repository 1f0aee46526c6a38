"""What the parts of one declarative task share."""

from __future__ import annotations

from pytest_lmeval.registry import Registry
from pytest_lmeval.templates.template import Template, compile_template


class Kit:
    """The registry, and every template, compiled when it is first filled."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self._templates: dict[str, Template] = {}

    def template(self, source: str) -> Template:
        """Return the compiled template; raise TemplateFault."""
        if source not in self._templates:
            self._templates[source] = compile_template(source)
        return self._templates[source]
