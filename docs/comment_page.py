"""A pull request's comment as a page to be photographed: the Markdown of `rageval comment`, set as GitHub sets it."""

from __future__ import annotations

import re
from pathlib import Path

from markdown_it import MarkdownIt

ALERTS = {"CAUTION": ("#cf222e", "Caution"), "TIP": ("#1a7f37", "Tip"), "WARNING": ("#9a6700", "Warning")}
STYLE = """
body { margin: 0; padding: 20px; background: #fff; color: #1f2328; font: 15px/1.5 sans-serif; }
.comment { border: 1px solid #d0d7de; border-radius: 6px; }
.head { padding: 8px 16px; background: #f6f8fa; border-bottom: 1px solid #d0d7de; color: #59636e; }
.head b { color: #1f2328; }
.head span { border: 1px solid #d0d7de; border-radius: 9px; padding: 0 7px; font-size: 12px; }
.body { padding: 12px 16px; }
blockquote { margin: 0 0 14px; padding: 4px 16px; border-left: 4px solid; }
blockquote .kind { font-weight: 600; }
blockquote strong { color: #1f2328; }
p, ul { margin: 0 0 10px; }
table { border-collapse: collapse; margin-bottom: 12px; }
td, th { border: 1px solid #d0d7de; padding: 4px 12px; }
code { background: #eff1f3; border-radius: 4px; padding: 1px 4px; font-size: 13px; }
details { margin-bottom: 4px; }
"""
_ALERT = re.compile(r"<blockquote>\s*<p>\[!(\w+)\]\n?")


def comment_page(markdown: str, place: Path) -> Path:
    """Write the comment as a page; return where it is."""
    content = MarkdownIt("commonmark", {"html": True}).enable("table").render(markdown)
    content = _ALERT.sub(_coloured, content)
    head = '<div class="head"><b>github-actions</b> <span>bot</span> commented</div>'
    place.write_text(
        f'<!doctype html><html data-ready><meta charset="utf-8"><style>{STYLE}</style>'
        f'<div class="comment">{head}<div class="body">{content}</div></div></html>',
        encoding="utf-8",
    )
    return place


def _coloured(alert: re.Match[str]) -> str:
    colour, kind = ALERTS[alert[1]]
    return f'<blockquote style="border-color: {colour}"><p class="kind" style="color: {colour}">{kind}</p><p>'
