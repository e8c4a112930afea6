// Upstream serves what package suite has on its standard input and output, so
// that the conformance suite can be run against a host with it behind.
//
//	upstream [-era both|legacy|modern]
package main

import (
	"flag"
	"os"

	"github.com/toolroom-mcp/toolroom/host/fixture/suite"
)

func main() {
	era := flag.String("era", "both", "both, legacy or modern")
	flag.Parse()
	suite.Serve(os.Stdin, os.Stdout, *era)
}
