package upstream

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What programs write when they do not start, and the line that says why.
func TestTheCauseOnStandardError(t *testing.T) {
	for want, text := range map[string]string{
		"":                                      "\n\n",
		"fixture: cannot find my configuration": "starting\nfixture: cannot find my configuration\n",
		"npm error 404 Not Found - GET https://r.example/@x%2fnope - Not found":     "npm warn old\nnpm error code E404\nnpm error 404 Not Found - GET https://r.example/@x%2fnope - Not found\nnpm error 404\nnpm error 404  '@x/nope@*' is not in this registry.\nnpm error 404\nnpm error 404 Note that you can also install from a\nnpm error 404 tarball, folder, http url, or git folder.\nnpm error A complete log of this run can be found in: /h/.npm/_logs/1.log\n",
		"npm ERR! 404 Not Found - GET https://r.example/nope - Not found":           "npm ERR! code E404\nnpm ERR! 404 Not Found - GET https://r.example/nope - Not found\nnpm ERR! A complete log of this run can be found in: /h/x.log",
		"npm error enoent Could not read package.json: Error: ENOENT: no such file": "npm error code ENOENT\nnpm error syscall open\nnpm error path /p/package.json\nnpm error errno -2\nnpm error enoent Could not read package.json: Error: ENOENT: no such file\nnpm error A complete log of this run can be found in: /h/x.log",
		"npm error could not determine executable to run":                           "npm error could not determine executable to run\nnpm error A complete log of this run can be found in: /h/x.log",
		"Error: Cannot find module '/x/y.js'":                                       "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/x/y.js'\n    at Module._resolveFilename (node:internal:1:2)\n    at error: here (x.js:1) {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.1.0\n",
		"ModuleNotFoundError: No module named 'mcp'":                                "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\n    import mcp\nModuleNotFoundError: No module named 'mcp'\n",
		"KeyError: 'TOKEN'":                      "Traceback (most recent call last):\nValueError: first\n\nDuring handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"x.py\"\nKeyError: 'TOKEN'\r\n",
		"panic: no token":                        "panic: no token\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:5 +0x20\nexit status 2\n",
		"error: unexpected argument '--x' found": "error: unexpected argument '--x' found\n\nUsage: server [OPTIONS]\n\nFor more information, try '--help'.\n",
		"docker: Error response from daemon: pull access denied for x, repository does not exist.":        "Unable to find image 'x:latest' locally\ndocker: Error response from daemon: pull access denied for x, repository does not exist.\n\nRun 'docker run --help' for more information\n",
		"2026-01-01 10:00:00 [ERROR] server: cannot bind":                                                 "2026-01-01 10:00:00 [ERROR] server: cannot bind\nbye\n",
		"  × No solution found when resolving tool dependencies: x was not found in the package registry": "  × No solution found when resolving tool dependencies: x was not found in the package registry",
	} {
		if want != "" && want[0] == ' ' {
			want = want[2:]
		}
		require.Equal(t, want, Cause(text), "%s", text)
	}
}
