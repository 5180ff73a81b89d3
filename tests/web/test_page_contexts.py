"""What templates get: each uses only the fields of its context, each field is used, and each has a sentence."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields

import pytest
from jinja2 import Environment, meta, nodes

import pytest_rageval.web.pages as web_pages
from pytest_rageval.render.html.environment import environment
from pytest_rageval.render.html.notebook import NotebookContext
from pytest_rageval.render.html.report_page import ReportContext, ReportStart
from pytest_rageval.render.html.report_writer import UnreadableContext
from pytest_rageval.render.html.sweep_page import SweepContext
from pytest_rageval.web.app import ErrorPage
from pytest_rageval.web.page_context import PageContext
from pytest_rageval.web.rendering import web_environment

SHARED = {"frame", "form_token", "base"}
"""What each page of the app gets besides: the frame of `layout.html`."""
OF_MACROS = {"trial", "caller", "varargs", "kwargs"}


def contexts() -> list[type[PageContext]]:
    for module in pkgutil.iter_modules(web_pages.__path__, f"{web_pages.__name__}."):
        importlib.import_module(module.name)
    found = {ErrorPage, *_below(PageContext)}
    return sorted((each for each in found if hasattr(each, "template")), key=lambda each: each.__name__)


def _below(parent: type) -> Iterator[type]:
    children: list[type] = parent.__subclasses__()
    for child in children:
        yield child
        yield from _below(child)


def trees(pages: Environment, name: str, seen: set[str]) -> Iterator[nodes.Template]:
    """Yield a template with all that it includes, extends or imports with its variables."""
    if name in seen:
        return
    seen.add(name)
    assert pages.loader is not None
    tree = pages.parse(pages.loader.get_source(pages, name)[0])
    yield tree
    for other in meta.find_referenced_templates(tree):
        if other is None:  # `{% extends base %}`
            yield from trees(pages, "layout.html", seen)
            yield from trees(pages, "bare.html", seen)
        elif other in _with_context(tree):
            yield from trees(pages, other, seen)


def _with_context(tree: nodes.Template) -> set[str]:
    names = set()
    for node in tree.find_all((nodes.Include, nodes.Extends, nodes.Import, nodes.FromImport)):
        assert isinstance(node, nodes.Include | nodes.Extends | nodes.Import | nodes.FromImport)
        has_context = isinstance(node, nodes.Include | nodes.Extends) or node.with_context
        if has_context and isinstance(node.template, nodes.Const):
            names.add(node.template.value)
    return names


def variables_of(pages: Environment, name: str) -> set[str]:
    """Return the variables that a template reads from its context."""
    read: set[str] = set()
    written: set[str] = set()
    for tree in trees(pages, name, set()):
        read |= meta.find_undeclared_variables(tree)
        for node in tree.find_all(nodes.Assign):
            written |= {each.name for each in node.target.find_all(nodes.Name)}
            if isinstance(node.target, nodes.Name):
                written.add(node.target.name)
        written |= {each.target for each in tree.find_all(nodes.Import)}
    return read - written - set(pages.globals) - OF_MACROS


def macros_of(pages: Environment, name: str) -> set[str]:
    return {each.name for tree in trees(pages, name, set()) for each in tree.find_all(nodes.Macro)}


def names_of(context: type) -> set[str]:
    return {each.name for each in fields(context)}


@pytest.mark.parametrize("context", contexts(), ids=lambda each: each.__name__)
def test_a_page_of_the_app_uses_only_fields_of_its_context(context: type[PageContext]):
    pages = web_environment()
    read = variables_of(pages, context.template) - macros_of(pages, context.template)
    assert not read - names_of(context) - SHARED


REPORTS = {
    "page.html": ReportContext,
    "sweep.html": SweepContext,
    "notebook.html": NotebookContext,
    "unreadable.html": UnreadableContext,
}


@pytest.mark.parametrize("template", REPORTS)
def test_a_report_uses_only_fields_of_its_context_and_all_of_them(template: str):
    pages = environment()
    read = variables_of(pages, template)
    assert not read - macros_of(pages, template) - names_of(REPORTS[template])
    assert not names_of(REPORTS[template]) - read


OF_LINKS = {"run_id", "against"}
"""What the filters `key` and `cases` read of the context of a run."""
KEPT = {"UnfinishedRunPage": {"page"}}


@pytest.mark.parametrize("context", contexts(), ids=lambda each: each.__name__)
def test_each_field_of_a_context_is_used_by_its_template(context: type[PageContext]):
    if context.__name__ == "RunSectionsPage":
        pytest.skip("it has the fields of every page of a report, and shows a part of it")
    unused = names_of(context) - variables_of(web_environment(), context.template) - OF_LINKS
    if hasattr(context, "compare_with"):
        unused -= {"failing", "failing_total", "one_sided", "about", "sections", "description", "head", "sections_at"}
    assert not unused - KEPT.get(context.__name__, set())


@pytest.mark.parametrize("context", [*contexts(), ReportStart, *REPORTS.values()], ids=lambda each: each.__name__)
def test_each_field_of_a_context_has_a_sentence(context: type):
    [definition] = ast.parse(inspect.getsource(context)).body
    assert isinstance(definition, ast.ClassDef)
    body = definition.body
    for place, node in enumerate(body):
        if isinstance(node, ast.AnnAssign):
            behind = body[place + 1] if place + 1 < len(body) else None
            assert isinstance(behind, ast.Expr), ast.unparse(node)
            assert isinstance(behind.value, ast.Constant), ast.unparse(node)
            assert str(behind.value.value).endswith("."), ast.unparse(node)


@pytest.mark.parametrize("context", contexts(), ids=lambda each: each.__name__)
def test_the_class_names_its_page(context: type[PageContext]):
    assert web_environment().get_template(context.template)
    assert inspect.getdoc(context)
