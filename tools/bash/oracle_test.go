//go:build oracle && linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/bench/oracle"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/mcpkittest"
)

// An npm build succeeds inside the sandbox: scripts, programs of node_modules,
// a local dependency, a written cache.
func TestNpmBuild(t *testing.T) {
	usable, missing := levels(t)
	if len(usable) == 0 || usable[0] != "L2" {
		t.Skipf("not run: levels %v are missing", missing)
	}
	node, npm := oracle.Path(t, "node"), oracle.Path(t, "npm")
	p := newOuterPlace(t)
	p.env = append(p.env, "PATH="+filepath.Dir(node)+":"+filepath.Dir(npm)+":"+os.Getenv("PATH"))
	p.write("root/package.json", `{"name":"app","version":"1.0.0","scripts":{"build":"maker src/a.js dist/a.js && node dist/a.js"},"dependencies":{"maker":"file:./maker"}}`)
	p.write("root/maker/package.json", `{"name":"maker","version":"1.0.0","bin":{"maker":"make.js"}}`)
	require.NoError(t, os.Chmod(p.write("root/maker/make.js", "#!/usr/bin/env node\nconst fs = require('fs'); const [i, o] = process.argv.slice(2);\n"+
		"fs.mkdirSync(require('path').dirname(o), {recursive: true}); fs.writeFileSync(o, fs.readFileSync(i, 'utf8').replace('WORD', 'built'));\n"), 0o755))
	p.write("root/src/a.js", "console.log('it is WORD'); require('http').createServer((q, s) => s.end('x')).listen(0, '127.0.0.1', function () { this.close() })\n")
	s := p.serveBin(mcpkittest.Build(t, "./tools/bash"), mcpkittest.Options{}, "--sandbox", "L2")
	r := s.bash("npm install --offline --no-audit --no-fund && npm run build", "timeout", 300_000, "auto_background_after", 300_000)
	require.Contains(t, r.Text, "it is built\n", r.Text)
	require.EqualValues(t, 0, number(t, r, "exit_code"), r.Text)
	require.DirExists(t, filepath.Join(p.root, "node_modules"))
	require.Contains(t, s.bash("npm config get cache").Text, p.kept)
	require.NoDirExists(t, filepath.Join(p.home, ".npm"))
}
