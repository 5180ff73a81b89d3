"""Cases whose id or path holds a credential: masked in every record, they could not be found again."""

from __future__ import annotations

from dataclasses import replace

from pytest_rageval.cases.loading import CaseFile
from pytest_rageval.io.masking import Mask


def without_masked_keys(file: CaseFile, mask: Mask) -> CaseFile:
    """Return a case file with a problem in place of each case whose id or path holds a credential."""
    if mask.is_empty:
        return file
    sound = [case for case in file.cases if mask.text(case.key) == case.key]
    problems = []
    for case in file.cases:
        if mask.text(case.source.file) != case.source.file:
            what = "path of the case file"
        elif mask.text(case.key) != case.key:
            what = "id of the case"
        else:
            continue
        remedy = "give it another name, or take the variable out of the environment"
        problems.append(f"{mask.text(str(case.source))}: the {what} holds a credential, which is masked; {remedy}")
    return replace(file, cases=sound, problems=(*file.problems, *problems)) if problems else file
