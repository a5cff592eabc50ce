"""The application: routes, refusals, files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from math import isfinite
from pathlib import Path
from typing import Annotated, Any

import msgspec
from fastapi import Body, FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from deniable import __version__
from deniable.results.base import Part
from deniable.results.explain_result import ChooseResult, CurvesResult, ExplainResult
from deniable.web import listed_runs, request_forms
from deniable.web.answer_pool import Answers
from deniable.web.guard import Guard
from deniable.web.promise_costs import Costs, PlannerAnswer, read_chosen
from deniable.web.work import Answer, refusal

STATIC = Path(__file__).parent / "static"
REPORT_POLICY = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:"
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": request_forms.Refusal, "description": text}
    for status, text in {
        400: "The body is not JSON.",
        413: "The body is too large.",
        422: "A value is out of its range, values contradict each other, or the answer would cost too much.",
        503: "Too many requests are waiting.",
    }.items()
}


def create_app(folder: Path | None = None, hosts: Sequence[str] = (), answers: Answers | None = None) -> FastAPI:
    """The planner over the audits in `folder`, for requests to this machine's addresses, localhost and `hosts`."""
    answers = answers or Answers()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await answers.warm_up()
        yield
        answers.close()

    app = FastAPI(
        title="deniable planner",
        version=__version__,
        summary="Choose and explain the privacy of machine learning by what it means for a person.",
        telemetry={
            "auto_configure": False,
            "exclude": lambda scope: True,
        },  # nothing leaves, whatever the environment says
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    _answer(app, answers, folder)
    _list(app, folder)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _fail)
    app.add_middleware(Guard, hosts=hosts)
    _describe_answers(app)
    app.mount("/", StaticFiles(directory=STATIC, html=True), name="page")
    return app


def _answer(app: FastAPI, answers: Answers, folder: Path | None) -> None:
    """Routes that compute, each for an address (GET) and for a JSON body (POST)."""

    async def reply(kind: str, asked: BaseModel, connection: Request) -> Response:
        found = await _while_connected(connection, answers.ask(kind, _text(asked)))
        return Response(status_code=499) if found is None else _json(*found)

    @app.post(
        "/api/costs",
        operation_id="costs-post",
        summary=(Costs.__doc__ or "").splitlines()[0],
        responses={200: _content(Costs), **_REFUSALS},
        response_class=Response,
    )
    async def tell_costs(request: request_forms.CostsRequest, connection: Request) -> Response:
        try:
            chosen = read_chosen(request.frontier, folder)
        except ValueError as refused:
            return _json(422, refusal("frontier", None, str(refused)))
        return await reply("costs", request.model_copy(update={"frontier": chosen}), connection)

    def route(path: str, kind: str, forms: tuple[type[BaseModel], type[BaseModel]], gives: type[Part]) -> None:
        query, body = forms

        async def get(request: Any, connection: Request) -> Response:
            return await reply(kind, request, connection)

        async def post(request: Any, connection: Request) -> Response:
            return await reply(kind, request, connection)

        get.__annotations__["request"] = Annotated[query, Query()]
        post.__annotations__["request"] = Annotated[body, Body()]
        for method, form in {"GET": get, "POST": post}.items():
            app.add_api_route(
                path,
                form,
                methods=[method],
                operation_id=f"{kind}-{method.lower()}",
                summary=(gives.__doc__ or "").splitlines()[0],
                responses={200: _content(gives), **_REFUSALS},
                response_class=Response,
            )

    explain = request_forms.ExplainQuery, request_forms.ExplainRequest
    choose = request_forms.ChooseQuery, request_forms.ChooseRequest
    route("/api/explain", "explain", explain, ExplainResult)
    route("/api/choose", "choose", choose, ChooseResult)
    route("/api/curves", "curves", explain, CurvesResult)
    route("/api/plan/explain", "plan-explain", explain, PlannerAnswer)
    route("/api/plan/choose", "plan-choose", choose, PlannerAnswer)


_ANSWERS = ExplainResult, ChooseResult, CurvesResult, PlannerAnswer, Costs
_REFERENCE = "#/components/schemas/{name}"


def _content(gives: type[Part]) -> dict[str, Any]:
    """An answer in the API's description of itself."""
    schema = {"$ref": _REFERENCE.format(name=gives.__name__)}
    return {"description": "The answer.", "content": {"application/json": {"schema": schema}}}


def _describe_answers(app: FastAPI) -> None:
    """The answers' schemas are made from the fields of the results, which FastAPI does not know."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        document = describe()
        _, schemas = msgspec.json.schema_components(_ANSWERS, ref_template=_REFERENCE)
        document["components"]["schemas"] |= schemas
        return document

    app.openapi = openapi  # type: ignore[method-assign]


async def _while_connected(connection: Request, work: Coroutine[Any, Any, Answer]) -> Answer | None:
    """The outcome of `work`; None, and the work cancelled, where the client goes away before it."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_wait_until_left(connection))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        return working.result() if working.done() else None
    finally:
        for task in (working, leaving):
            task.cancel()


async def _wait_until_left(connection: Request) -> None:
    """Return when the client has gone."""
    while (await connection.receive())["type"] != "http.disconnect":
        pass


def _list(app: FastAPI, folder: Path | None) -> None:
    @app.get("/fields.json", include_in_schema=False)
    def list_fields() -> Any:
        """What the page's form is made of."""
        return request_forms.page_fields()

    @app.get("/api/runs", response_model=request_forms.RunList)
    def list_runs() -> Any:
        """The runs in the folder that the server was given."""
        return request_forms.RunList(folder=None if folder is None else folder.name, runs=listed_runs.list_runs(folder))

    @app.get("/runs/report", response_class=Response, responses={404: {"model": request_forms.Refusal}})
    def open_own_report() -> Response:
        """The report of the run that the folder itself holds."""
        return open_report(listed_runs.HERE)

    @app.get("/runs/{name}/report", response_class=Response, responses={404: {"model": request_forms.Refusal}})
    def open_report(name: str) -> Response:
        """The report of one of them."""
        page = listed_runs.report(folder, name)
        if page is None:
            return _json(404, refusal("name", name, "no run of this name has a report here; /api/runs lists them"))
        return Response(page, media_type="text/html", headers={"Content-Security-Policy": REPORT_POLICY})


def _text(request: BaseModel) -> str:
    """Equal requests have one text."""
    return json.dumps(request.model_dump(exclude_none=True), sort_keys=True)


def _json(status: int, content: bytes) -> Response:
    return Response(content, status, media_type="application/json")


def _invalid(request: Request, error: Exception) -> Response:
    """The first thing wrong with a request, in words: field, value, range."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        return _json(400, refusal(None, None, "the body must be a JSON object"))
    path = [str(part) for part in first["loc"][1:]]
    field, value = path[0] if path else None, first.get("input")
    shown = value if isinstance(value, (int, str)) or (isinstance(value, float) and isfinite(value)) else None
    what = request_forms.expected_text(field, "choose" in request.url.path)
    message = f"{field or 'the request'} must be {what}, got {_short(value)}" if what else f"{field}: {first['msg']}"
    return _json(422, refusal(field, shown, message))


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _fail(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json(error.status_code, refusal(None, None, str(error.detail)))
