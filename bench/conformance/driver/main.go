// Driver is the client that the conformance suite's client scenarios require. The
// suite appends the address of a scenario's server. The driver runs a host with that
// server and uses everything that the server offers: it calls each tool, reads each
// resource, gets each prompt, and answers the server's requests. So the suite's server
// observes the host as a client.
//
//	driver -host FILE [-era legacy|modern] URL
//
// era is the protocol era of the driver's own connection to the host. The era of the
// host's connection follows from MCP_CONFORMANCE_PROTOCOL_VERSION, which the suite
// sets. MCP_CONFORMANCE_CONTEXT can contain the calls to make and the client that
// signs in. If the server requires a sign-in, the driver runs mcp-host login, as the
// error says, acts as its browser, and continues with the same host.
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
