package cli

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The directories of npm 10, pnpm 10 and 12, Yarn 4.18 and Bun 1.4, as they made them.
func TestCachesOfCommandsAreKnown(t *testing.T) {
	for dir, command := range map[string]string{
		"/home/u/.npm/_npx/1c5fd4b1d9b5f9b5/node_modules/@toolroom/linux-x64/bin": "npx",
		"/home/u/.cache/pnpm/dlx/eb26aa99249f7b029cfd9bee6a56d0b8b19d02910bf24b23818d7b250464cb61/1a220e5e42f-2759/node_modules/.pnpm/@toolroom+linux-x64@0.10.0/node_modules/@toolroom/linux-x64/bin": "pnpm dlx",
		"/home/u/.cache/pnpm/dlx/20e4c633ad3419f059ae3ade675963e1/mx01tso6-1w5/node_modules/.pacquet/@toolroom+linux-x64@0.10.0/node_modules/@toolroom/linux-x64/bin":                                  "pnpm dlx",
		"/tmp/xfs-2de2657c/dlx-23947/.yarn/unplugged/@toolroom-linux-x64-npm-0.10.0-8f92bc6543/node_modules/@toolroom/linux-x64/bin":                                                                   "dlx",
		"/home/u/.cache/.bun/install/cache/.bunx-0/toolroom@latest/node_modules/@toolroom/linux-x64/bin":                                                                                               "bunx",
		"/tmp/bunx-1000-toolroom@latest/node_modules/@toolroom/linux-x64/bin":                                                                                                                          "bunx",

		"/usr/bin": "",
		"/usr/lib/node_modules/toolroom/node_modules/@toolroom/linux-x64/bin": "",
		"/home/u/dlx/project/node_modules/@toolroom/linux-x64/bin":            "",
		"/home/u/dlx-2/bin": "",
		"/home/u/.local/share/pnpm/global/5/.pnpm/@toolroom+linux-x64@0.9.0/node_modules/@toolroom/linux-x64/bin": "",
	} {
		require.Equal(t, command, cachedBy(dir), dir)
	}
}

func TestDirectoriesOfOneVersionAreKnown(t *testing.T) {
	for program, moves := range map[string]bool{
		"/home/u/p/node_modules/.pnpm/@toolroom+linux-x64@0.9.0/node_modules/@toolroom/linux-x64/bin/mcp-host":                         true,
		"/home/u/.local/share/pnpm/global/v11/a2f-18ec22b2a217820a-0/node_modules/.pnpm/node_modules/@toolroom/linux-x64/bin/mcp-host": true,
		"/home/u/p/.yarn/unplugged/@toolroom-linux-x64-npm-0.9.0-8f92bc6543/node_modules/@toolroom/linux-x64/bin/mcp-host":             true,
		"/home/u/p/node_modules/.store/@toolroom-linux-x64-npm-0.9.0-2dc628f013/package/bin/mcp-host":                                  true,
		"/home/u/.local/share/pnpm/global/5/.pnpm/node_modules/@toolroom/linux-x64/bin/mcp-host":                                       false,
		"/usr/lib/node_modules/toolroom/node_modules/@toolroom/linux-x64/bin/mcp-host":                                                 false,
		"/home/u/.bun/install/global/node_modules/@toolroom/linux-x64/bin/mcp-host":                                                    false,
		"/usr/bin/mcp-host": false,
	} {
		require.Equal(t, moves, movesWithUpdates(program), program)
	}
}

func TestLinkThatPnpmKeeps(t *testing.T) {
	for dir, link := range map[string]string{
		"/g/5/.pnpm/@toolroom+linux-x64@0.9.0/node_modules/@toolroom/linux-x64/bin": "/g/5/.pnpm/node_modules/@toolroom/linux-x64/bin",
		"/g/5/.pnpm": "",
		"/usr/bin":   "",
	} {
		require.Equal(t, link, pnpmLink(dir), dir)
	}
}
