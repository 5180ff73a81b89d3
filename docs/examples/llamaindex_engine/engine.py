"""A query engine of LlamaIndex: notes/ cut by its Markdown parser, a retriever, and an answer that quotes the best.

With a model, `Quoting` becomes `RetrieverQueryEngine.from_args(retriever, llm=…)`, and the rest stays.
"""

import re
from pathlib import Path

from llama_index.core import Document
from llama_index.core.node_parser import MarkdownNodeParser
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.response import Response
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore

NOTES = Path(__file__).parent / "notes"
FEWEST_SHARED_WORDS = 2


def nodes():
    """Return the sections of the notes."""
    parser = MarkdownNodeParser()
    found = []
    for path in sorted(NOTES.glob("*.md")):
        document = Document(text=path.read_text(encoding="utf-8"), metadata={"file_path": f"notes/{path.name}"})
        found += parser.get_nodes_from_documents([document])
    return found


def words(text):
    return set(re.findall(r"\w{3,}", text.lower())) - {"how", "who", "the", "what", "does", "can"}


class SharedWords(BaseRetriever):
    """Sections that share words with the question, those with most first."""

    def __init__(self, sections):
        super().__init__()
        self.sections = sections

    def _retrieve(self, query_bundle):
        found = []
        for section in self.sections:
            shared = len(words(query_bundle.query_str) & words(f"{section.metadata} {section.text}"))
            if shared >= FEWEST_SHARED_WORDS:
                found.append(NodeWithScore(node=section, score=shared))
        return sorted(found, key=lambda node: -node.score)


class Quoting(CustomQueryEngine):
    """Answers with the text of the best section."""

    retriever: BaseRetriever

    def custom_query(self, query_str: str) -> Response:
        found = self.retriever.retrieve(query_str)
        text = found[0].text if found else "The notes do not say anything about this."
        return Response(response=text, source_nodes=found)


engine = Quoting(retriever=SharedWords(nodes()))
