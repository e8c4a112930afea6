// Driver is the client that the conformance suite's client scenarios ask for.
// The suite appends the address of a scenario's server; the driver runs a host
// with that server behind it and uses everything the server has: it calls each
// tool, reads each resource, gets each prompt, and answers what it is asked.
// So what the suite's server sees is how the host behaves as a client.
//
//	driver -host FILE [-era legacy|modern] URL
//
// The era is that of the driver's own connection to the host. In which the
// host opens its connection follows MCP_CONFORMANCE_PROTOCOL_VERSION, which
// the suite sets; MCP_CONFORMANCE_CONTEXT may name the calls to make, and the
// client that signs in. Where the server needs a sign-in, the driver runs
// mcp-host login, as the error says, with itself as browser, and goes on with
// the same host.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	host := flag.String("host", "mcp-host", "the host's `FILE`")
	era := flag.String("era", "modern", "what is spoken to the host: legacy or modern")
	flag.Parse()
	if os.Getenv(browserVariable) != "" {
		if err := browse(flag.Arg(0)); err != nil {
			fmt.Fprintln(os.Stderr, "driver:", err)
			os.Exit(1)
		}
		return
	}
	if err := drive(*host, *era, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "driver:", err)
		os.Exit(1)
	}
}
