"""Operations of the older API that are not offered yet: answered with 501 and a sentence, so that clients say so."""

from fastapi import APIRouter

from determined.errors import NotImplementedYet

router = APIRouter()


async def refuse() -> None:
    raise NotImplementedYet("this master does not offer that operation yet")


OPERATIONS: tuple[tuple[str, str], ...] = tuple[tuple[str, str]]()
"""Method and path below ``/api/v1``."""

for _method, _path in OPERATIONS:
    router.add_api_route(f"/api/v1{_path}", refuse, methods=[_method], include_in_schema=False)
