"""The pages of jobs: the progress and log of a run started here, and the buttons to cancel or finish it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from pytest_rageval.web.forms import Submitted
from pytest_rageval.web.jobs.jobs import TheJobs
from pytest_rageval.web.rendering import page, path_to, redirect

router = APIRouter()


@router.get("/jobs/{job_id}")
def show_job(request: Request, jobs: TheJobs, job_id: str) -> Response:
    """Show one job: what it runs, its progress and its log."""
    return page(request, "job.html", job_status=jobs.status(job_id), log=jobs.log(job_id))


@router.get("/jobs/{job_id}/progress")
def show_progress(request: Request, jobs: TheJobs, job_id: str) -> Response:
    """Show the changing part of the job's page, for a script that polls while the run goes on."""
    return page(request, "job_progress.html", job_status=jobs.status(job_id), log=jobs.log(job_id))


@router.post("/jobs/{job_id}/cancel")
def cancel_job(_: Submitted, jobs: TheJobs, job_id: str) -> Response:
    jobs.cancel(job_id)
    return redirect(path_to("jobs", job_id))


@router.post("/jobs/{job_id}/resume")
def resume_job(_: Submitted, jobs: TheJobs, job_id: str) -> Response:
    """Finish a stopped or killed run."""
    jobs.resume(job_id)
    return redirect(path_to("jobs", job_id))
