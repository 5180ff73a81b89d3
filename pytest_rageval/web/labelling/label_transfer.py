"""Labels of a working copy put into a version of its dataset that somebody else saved meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_rageval.cases.marks import Marks, case_with_marks
from pytest_rageval.cases.note_versions import NOTE_HASHES
from pytest_rageval.cases.writing.case_text import JsonLines
from pytest_rageval.model import EvalCase
from pytest_rageval.web.versions.dataset_diff import DatasetChanges, dataset_changes


@dataclass(frozen=True, slots=True)
class LabelTransfer:
    """What was labelled in a copy, over the cases of a newer version.

    labelled  cases of the copy whose labels differ from those of the version that it began from, by id
    newer     the cases of the newer version
    disputed  ids of labelled cases whose labels the newer version changed too, to others
    homeless  labelled cases that the newer version does not have
    """

    labelled: Mapping[str, EvalCase]
    newer: Sequence[EvalCase]
    disputed: list[str]
    homeless: list[EvalCase]

    @property
    def changes(self) -> DatasetChanges:
        """What the labels change in the newer version."""
        after = [
            case_with_marks(case, Marks.of(self.labelled[case.id])) if case.id in self.labelled else case
            for case in self.newer
        ]
        return dataset_changes(self.newer, after)

    def content(self, newer_content: bytes) -> bytes:
        """The file of the newer version with the labels; all else stays as it is there, byte for byte."""
        text = JsonLines(newer_content)
        changed = {
            case.source.line: text.line_with(case, Marks.of(self.labelled[case.id]), _hashes(self.labelled[case.id]))
            for case in self.newer
            if case.id in self.labelled
        }
        return text.composed(changed)


def label_transfer(
    begun: Sequence[EvalCase], labelled: Sequence[EvalCase], newer: Sequence[EvalCase]
) -> LabelTransfer:  # fmt: skip
    """Hold a copy against the version that it began from, and that against the newer one."""
    marks_begun = {case.id: Marks.of(case) for case in begun}
    marks_newer = {case.id: Marks.of(case) for case in newer}
    changed = {case.id: case for case in labelled if Marks.of(case) != marks_begun.get(case.id)}
    disputed = [
        case_id for case_id, case in changed.items()
        if case_id in marks_newer and marks_newer[case_id] not in (marks_begun.get(case_id), Marks.of(case))
    ]  # fmt: skip
    homeless = [case for case_id, case in changed.items() if case_id not in marks_newer]
    return LabelTransfer(changed, newer, disputed, homeless)


def _hashes(case: EvalCase) -> Mapping[str, str]:
    """Hashes of the notes that the labels were made from."""
    hashes = case.metadata.get(NOTE_HASHES)
    return {path: str(digits) for path, digits in hashes.items()} if isinstance(hashes, Mapping) else {}
