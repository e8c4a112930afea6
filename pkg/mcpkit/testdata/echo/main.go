// Mcp-echo is the server that mcpkit's own tests start.
//
// Synopsis:
//
//	mcp-echo [FLAG…] [DIR…]
//
// It echoes, waits, counts, panics and starts children.
package main

import (
	_ "embed"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
)

//go:embed main.go
var source string

// nap is the argument that makes this program a child that only sleeps.
const nap = "nap"

func main() {
	if len(os.Args) == 2 && os.Args[1] == nap {
		time.Sleep(time.Hour)
	}
	cmd := mcpkit.NewCommand("echo", "Echo", source)
	cmd.Instructions = "Echoes what it is given."
	var dirs []string
	cmd.Positional = func(args []string) { dirs = append(dirs, args...) }
	cmd.Flags.Func("root", "use `DIR` as a root", func(dir string) error {
		dirs = append(dirs, dir)
		return nil
	})
	loud := flagBool(cmd.Flags, "loud", "print to the process's standard output, which must not break the protocol")
	cmd.Tools = func() ([]*mcpkit.Tool, error) {
		if *loud {
			fmt.Println("a stray print of", strings.Join(dirs, ","))
		}
		return tools(&dirs)
	}
	os.Exit(cmd.Main())
}

func flagBool(flags *flag.FlagSet, name, usage string) *bool { return flags.Bool(name, false, usage) }
