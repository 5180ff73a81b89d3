"""A chain of LangChain: a retriever over notes/, and an answer that quotes what it found.

With a model, `quote` becomes `prompt | ChatOpenAI(model=…) | StrOutputParser()`, and the rest stays.
"""

import re
from pathlib import Path

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

NOTES = Path(__file__).parent / "notes"
FEWEST_SHARED_WORDS = 2


def documents():
    """Return a document for each section of the notes."""
    found = []
    for path in sorted(NOTES.glob("*.md")):
        title, *parts = path.read_text(encoding="utf-8").split("\n## ")
        for part in parts:
            heading, _, text = part.partition("\n")
            metadata = {"source": f"notes/{path.name}", "Header 1": title.strip("# \n"), "Header 2": heading}
            found.append(Document(text.strip(), metadata=metadata))
    return found


def words(text):
    return set(re.findall(r"\w{3,}", text.lower())) - {"how", "who", "the", "what", "does", "can"}


class SharedWords(BaseRetriever):
    """Documents that share words with the question, those with most first."""

    notes: list[Document]

    def _get_relevant_documents(self, query, *, run_manager):  # noqa: ARG002 because LangChain passes it
        ranked = []
        for note in self.notes:
            shared = len(words(query) & words(f"{note.metadata} {note.page_content}"))
            if shared >= FEWEST_SHARED_WORDS:
                ranked.append((shared, note))
        ranked.sort(key=lambda entry: -entry[0])
        return [note for _, note in ranked]


def quote(given):
    found = given["context"]
    return found[0].page_content if found else "The notes do not say anything about this."


retriever = SharedWords(notes=documents())
found = {"context": retriever, "question": RunnablePassthrough()}
chain = found | RunnablePassthrough.assign(answer=RunnableLambda(quote))
