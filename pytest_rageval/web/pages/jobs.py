"""The pages of jobs: the progress and log of a run started here, and the buttons to cancel or finish it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from pytest_rageval.errors import SettingsError
from pytest_rageval.web.forms import Submitted
from pytest_rageval.web.jobs.job_status import JobStatus
from pytest_rageval.web.jobs.jobs import Jobs, TheJobs
from pytest_rageval.web.rendering import page, path_to, redirect

router = APIRouter()


@router.get("/jobs/{job_id}")
def show_job(request: Request, jobs: TheJobs, job_id: str) -> Response:
    """Show one job: what it runs, its progress and its log."""
    return page(request, "job.html", job_status=_status(jobs, job_id), log=jobs.log(job_id))


@router.get("/jobs/{job_id}/progress")
def show_progress(request: Request, jobs: TheJobs, job_id: str) -> Response:
    """Show the changing part of the job's page, for a script that polls while the run goes on."""
    return page(request, "job_progress.html", job_status=_status(jobs, job_id), log=jobs.log(job_id))


@router.post("/jobs/{job_id}/cancel")
def cancel_job(_: Submitted, jobs: TheJobs, job_id: str) -> Response:
    _status(jobs, job_id)
    jobs.cancel(job_id)
    return redirect(path_to("jobs", job_id))


@router.post("/jobs/{job_id}/resume")
def resume_job(_: Submitted, jobs: TheJobs, job_id: str) -> Response:
    """Finish a stopped or killed run."""
    _status(jobs, job_id)
    try:
        jobs.resume(job_id)
    except SettingsError as error:
        raise HTTPException(409, str(error)) from None
    return redirect(path_to("jobs", job_id))


def _status(jobs: Jobs, job_id: str) -> JobStatus:
    try:
        return jobs.status(job_id)
    except SettingsError as error:
        raise HTTPException(404, str(error)) from None
