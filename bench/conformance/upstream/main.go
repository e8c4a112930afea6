// Upstream serves package conformanceserver on standard input and output, so that the
// conformance suite can run against a host in front of it.
//
//	upstream [-era both|legacy|modern]
package main

import (
	"flag"
	"os"

	"github.com/toolroom-mcp/toolroom/internal/testkit/conformanceserver"
)

func main() {
	era := flag.String("era", "both", "both, legacy or modern")
	flag.Parse()
	conformanceserver.Serve(os.Stdin, os.Stdout, *era)
}
