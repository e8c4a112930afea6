// Upstream serves what package suite has on its standard input and output, so
// that the conformance suite can be run against a host with it behind.
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
