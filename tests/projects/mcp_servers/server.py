"""A server of tools: by stdio, or with streamable-http and a port as arguments."""

import os
import sys

try:
    from mcp.server.mcpserver import MCPServer as Server
except ImportError:
    from mcp.server.fastmcp import FastMCP as Server

with open("started.txt", "a") as file:
    file.write(f"{os.getpid()}\n")
server = Server("shop")


@server.tool()
def find(order: str) -> dict[str, str]:
    """Look an order up."""
    with open("ran.txt", "a") as file:
        file.write(f"{order}\n")
    if order == "Z99":
        raise ValueError("unknown order")
    return {"status": f"{order} shipped"}


@server.tool()
def names() -> str:
    return " ".join(sorted(os.environ))


@server.tool()
def crash() -> str:
    print("no more paper", file=sys.stderr, flush=True)
    os._exit(3)


if __name__ == "__main__":
    server.run(*sys.argv[1:2], **({"port": int(sys.argv[2])} if sys.argv[2:] else {}))
