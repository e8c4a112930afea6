package serverjson

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func entry(t *testing.T, body string) Entry {
	t.Helper()
	e, err := Parse([]byte(`{"name": "io.github.owner/notes", "description": "d", "version": "1.0.0", ` + body + `}`))
	require.NoError(t, err)
	return e
}

func TestServer(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		set  map[string][]string
		via  string
		want string // command or address
		env  map[string]string
		need []string
	}{
		"npm": {
			body: `"packages": [{"registryType": "npm", "identifier": "@owner/notes", "version": "1.2.3", "runtimeHint": "evil", "runtimeArguments": [{"type": "positional", "value": "-y"}], "transport": {"type": "stdio"},
				"packageArguments": [{"type": "positional", "value": "serve"}, {"type": "named", "name": "--port", "default": "80"}, {"type": "named", "name": "--quiet"}, {"type": "positional", "valueHint": "directory", "isRequired": true, "isRepeated": true}],
				"environmentVariables": [{"name": "TOKEN", "isRequired": true, "isSecret": true}, {"name": "MODE", "default": "fast"}, {"name": "OTHER"}, {"name": "EXTRA", "isSecret": true}]}]`,
			set:  map[string][]string{"directory": {"/a", "/b c"}},
			want: "npx -y @owner/notes@1.2.3 serve --port 80 /a /b c", env: map[string]string{"TOKEN": "${TOKEN}", "MODE": "fast"}, need: []string{"TOKEN"},
		},
		"pypi": {body: `"packages": [{"registryType": "pypi", "identifier": "notes-mcp", "version": "2.0"}]`, want: "uvx notes-mcp@2.0"},
		"image": {
			body: `"packages": [{"registryType": "oci", "identifier": "ghcr.io/owner/notes", "version": "3", "runtimeArguments": [{"type": "named", "name": "-v", "value": "{dir}:/data", "variables": {"dir": {"isRequired": true}}}], "environmentVariables": [{"name": "A", "value": "b"}]}]`,
			set:  map[string][]string{"dir": {"/home/me"}},
			want: "docker run -i --rm -e A -v /home/me:/data ghcr.io/owner/notes:3", env: map[string]string{"A": "b"},
		},
		"the remote comes first": {
			body: `"packages": [{"registryType": "npm", "identifier": "notes"}], "remotes": [{"type": "sse", "url": "https://a.example/sse"}, {"type": "streamable-http", "url": "https://{tenant}.example/mcp", "variables": {"tenant": {"default": "main"}}, "headers": [{"name": "X-Key", "isRequired": true, "isSecret": true}, {"name": "Authorization", "value": "Bearer {key}", "variables": {"key": {"isSecret": true}}}]}]`,
			want: "https://main.example/mcp", need: []string{"NOTES_X_KEY", "KEY"},
		},
		"another way": {body: `"packages": [{"registryType": "npm", "identifier": "notes"}], "remotes": [{"type": "streamable-http", "url": "https://a.example/mcp"}]`, via: "npm", want: "npx -y notes"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := entry(t, c.body).Plan(c.via, c.set)
			require.NoError(t, err)
			require.Equal(t, "notes", plan.Server.Name)
			require.Equal(t, c.want, strings.Join(plan.Server.Command, " ")+plan.Server.URL)
			env := map[string]string{}
			for key, value := range plan.Server.Env {
				env[key] = value.Reveal()
			}
			if c.env == nil {
				c.env = map[string]string{}
			}
			require.Equal(t, c.env, env)
			require.Equal(t, c.need, plan.Needs)
			if plan.Server.URL != "" && len(plan.Server.Headers) > 0 {
				require.Equal(t, "${NOTES_X_KEY}", plan.Server.Headers["X-Key"].Reveal())
				require.Equal(t, "Bearer ${KEY}", plan.Server.Headers["Authorization"].Reveal())
			}
		})
	}
}

// An entry does not choose what runs, and reads nothing of the environment.
func TestEntriesThatAreRefused(t *testing.T) {
	npm := func(more string) string {
		return `"packages": [{"registryType": "npm", "identifier": "notes"` + more + `}]`
	}
	for body, want := range map[string]string{
		`"packages": [{"registryType": "npm", "identifier": "--call=evil"}]`:                                                  "is not the name of a package",
		`"packages": [{"registryType": "npm", "identifier": "../evil"}]`:                                                      "is not the name of a package",
		`"packages": [{"registryType": "npm", "identifier": "https://evil.example/x.tgz"}]`:                                   "is not the name of a package",
		`"packages": [{"registryType": "pypi", "identifier": "--with"}]`:                                                      "is not the name of a package",
		`"packages": [{"registryType": "oci", "identifier": "--privileged"}]`:                                                 "is not the name of a package",
		npm(`, "version": "1 -c evil"`):                                                                                       "is not a version",
		npm(`, "version": "--call"`):                                                                                          "is not a version",
		npm(`, "runtimeArguments": [{"type": "named", "name": "-c", "value": "evil"}]`):                                       "before the package",
		npm(`, "runtimeArguments": [{"type": "positional", "value": "--package=evil"}]`):                                      "before the package",
		npm(`, "packageArguments": [{"type": "positional", "value": "${AWS_SECRET_ACCESS_KEY}"}]`):                            "would expand",
		npm(`, "packageArguments": [{"type": "positional", "value": "{env:AWS_SECRET_ACCESS_KEY}"}]`):                         "would expand",
		npm(`, "packageArguments": [{"type": "named", "name": "--${HOME}", "value": "x"}]`):                                   "would expand",
		npm(`, "environmentVariables": [{"name": "NODE_OPTIONS", "value": "--require /evil"}]`):                               "not added automatically",
		npm(`, "environmentVariables": [{"name": "npm_config_registry", "value": "https://evil.example"}]`):                   "not added automatically",
		npm(`, "environmentVariables": [{"name": "A=B", "value": "x"}]`):                                                      "not added automatically",
		npm(`, "packageArguments": [{"type": "positional", "valueHint": "directory", "isRequired": true}]`):                   "give --set directory=VALUE",
		`"packages": [{"registryType": "oci", "identifier": "a/b", "runtimeArguments": [{"value": "--privileged"}]}]`:         "docker run with",
		`"packages": [{"registryType": "oci", "identifier": "a/b", "runtimeArguments": [{"value": "--entrypoint=sh"}]}]`:      "docker run with",
		`"packages": [{"registryType": "mcpb", "identifier": "https://a.example/x.mcpb"}]`:                                    "can only be had as mcpb",
		`"remotes": [{"type": "streamable-http", "url": "file:///etc/passwd"}]`:                                               "only http and https",
		`"remotes": [{"type": "streamable-http", "url": "https://${AWS_SECRET_ACCESS_KEY}.evil.example"}]`:                    "would expand",
		`"remotes": [{"type": "streamable-http", "url": "https://a.example", "headers": [{"name": "X\r\nY", "value": "v"}]}]`: "header name",
	} {
		_, err := entry(t, body).Plan("", nil)
		require.ErrorContains(t, err, want, body)
	}
	_, err := entry(t, npm(`, "environmentVariables": [{"name": "TOKEN", "isSecret": true}]`)).Plan("", map[string][]string{"TOKEN": {"x"}})
	require.ErrorContains(t, err, "is a secret")
	_, err = entry(t, npm("")).Plan("", map[string][]string{"x": {"y"}})
	require.ErrorContains(t, err, "no value of that name")
	_, err = entry(t, npm("")).Plan("cargo", nil)
	require.ErrorContains(t, err, "is not a way")
}

func TestLookup(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.EscapedPath() {
		case "/v0.1/servers/io.github.owner%2Fnotes/versions/latest":
			fmt.Fprint(w, `{"server": {"name": "io.github.owner/notes", "packages": [{"registryType": "npm", "identifier": "notes"}]}, "_meta": {}}`)
		case "/v0.1/servers/io.github.owner%2Flarge/versions/latest":
			fmt.Fprint(w, strings.Repeat(" ", maxEntry+1))
		case "/v0.1/servers/io.github.owner%2Floop/versions/latest":
			http.Redirect(w, req, req.URL.EscapedPath(), http.StatusFound)
		case "/v0.1/servers/io.github.owner%2Fpage/versions/latest":
			fmt.Fprint(w, "<html>")
		case "/v0.1/servers/io.github.owner%2Fempty/versions/latest":
			fmt.Fprint(w, `{"server": {"name": "x"}}`)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	e, err := Lookup(t.Context(), server.URL+"/", "io.github.owner/notes", "agent")
	require.NoError(t, err)
	require.Equal(t, "notes", e.Packages[0].Identifier)
	for name, want := range map[string]string{
		"large": "is larger than", "loop": "too many redirects", "page": "is not a server.json", "empty": "has neither packages nor remotes", "none": "has no such server",
	} {
		_, err := Lookup(t.Context(), server.URL, "io.github.owner/"+name, "agent")
		require.ErrorContains(t, err, want)
	}
}

func FuzzEntry(f *testing.F) {
	f.Add([]byte(`{"name": "a/b", "packages": [{"registryType": "npm", "identifier": "x", "packageArguments": [{"value": "{a}", "variables": {"a": {"default": "{a}"}}}]}]}`))
	f.Add([]byte(`{"name": "a/b", "remotes": [{"type": "sse", "url": "https://a.example", "headers": [{"name": "A", "value": "b"}]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		e, err := Parse(text)
		if err != nil {
			return
		}
		plan, err := e.Plan("", nil)
		if err != nil {
			return
		}
		for _, arg := range plan.Server.Command {
			for _, need := range plan.Needs {
				arg = strings.ReplaceAll(arg, "${"+need+"}", "")
			}
			if strings.ContainsAny(arg, "$\x00\n") {
				t.Errorf("%q", plan.Server.Command)
			}
		}
		if c := plan.Server.Command; len(c) > 0 && c[0] != "npx" && c[0] != "uvx" && c[0] != "docker" {
			t.Errorf("%q", c)
		}
	})
}
