"""A client of httpx without a network."""

import httpx


def streaming_client(answer) -> httpx.AsyncClient:
    """A client to a server that answers so, in a stream as over a network."""

    async def stream(content: bytes):
        yield content

    def respond(request: httpx.Request) -> httpx.Response:
        response = answer(request)
        if not hasattr(response, "_content"):
            return response
        return httpx.Response(
            response.status_code, headers=response.headers, content=stream(response.content)
        )

    return httpx.AsyncClient(transport=httpx.MockTransport(respond))
