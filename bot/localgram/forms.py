"""How an HTTP request becomes a call: query, form, multipart or JSON."""

from aiohttp import BodyPartReader, web

from bot.localgram.wire import Call, Upload, bad_request, form_value


async def read_call(request: web.Request) -> Call:
    """Raises: ApiError 400 when a JSON body cannot be read."""
    fields = dict(request.query.items())
    uploads: dict[str, Upload] = {}
    kind = request.content_type
    if kind == "application/json":
        fields |= await _json(request)
    elif kind == "multipart/form-data":
        await _multipart(request, fields, uploads)
    elif kind == "application/x-www-form-urlencoded":
        fields |= {key: str(value) for key, value in (await request.post()).items()}
    return Call(request.match_info["method"], fields, uploads)


async def _json(request: web.Request) -> dict[str, str]:
    try:
        body = await request.json()
    except ValueError:
        raise bad_request("can't parse JSON object") from None
    if not isinstance(body, dict):
        raise bad_request("expected an Object")
    return {key: form_value(value) for key, value in body.items() if value is not None}


async def _multipart(
    request: web.Request, fields: dict[str, str], uploads: dict[str, Upload]
) -> None:
    async for part in await request.multipart():
        if not isinstance(part, BodyPartReader) or part.name is None:
            continue
        if part.filename is None:
            fields[part.name] = await part.text()
        else:
            content = bytes(await part.read(decode=True))
            mime = part.headers.get("Content-Type", "")
            uploads[part.name] = Upload(part.filename, content, mime)
