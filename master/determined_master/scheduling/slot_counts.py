"""Slots by job and by user, for the limits of both."""


class SlotCounts:
    """Counts nothing but what ``add`` is told; jobs and users with 0 slots are left out."""

    __slots__ = ("of_job", "of_user")

    def __init__(self) -> None:
        self.of_job: dict[str, int] = {}
        self.of_user: dict[int, int] = {}

    def add(self, job_id: str, user_id: int, slots: int) -> None:
        of_job, of_user = self.of_job, self.of_user
        of_job[job_id] = of_job.get(job_id, 0) + slots
        if not of_job[job_id]:
            del of_job[job_id]
        of_user[user_id] = of_user.get(user_id, 0) + slots
        if not of_user[user_id]:
            del of_user[user_id]
