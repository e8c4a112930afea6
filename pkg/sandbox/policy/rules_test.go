package policy_test

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func TestDenyAndAskRules(t *testing.T) {
	for _, c := range []struct {
		rule, command string
		want          bool
	}{
		{"git push *", "git push", true},
		{"git push *", "git push origin main", true},
		{"git push *", "git -C dir --no-pager push -f", true},
		{"git push *", "git -c a.b=c push", true},
		{"git push *", "/usr/bin/git push", true},
		{"git push *", "cd x && git push", true},
		{"git push *", "env A=1 git push", true},
		{"git push *", "a=push; git $a", true},
		{"git push *", "g''it pu\\sh", true},
		{"git push *", "git pull", false},
		{"git push *", "git log push", false},
		{"git push *", "git stash push", false},
		{"git push *", "git commit -m 'git push'", false},
		{"git push *", "echo git push", false},
		{"git push --force *", "git push", false},
		{"git push --force *", "git push origin main --force", true},
		{"git push --force *", "git push --force-with-lease", false},
		{"git push origin *", "git push -o x origin", true},
		{"git push origin *", "git push fork origin", false},
		{"rm -rf *", "rm -rf /", true},
		{"rm -rf *", "rm -r -f /", true},
		{"rm -rf *", "rm x -fvr", true},
		{"rm -rf *", "rm -r x", false},
		{"rm *", "find . -exec rm {} +", true},
		{"rm *", "ls | xargs rm", true},
		{"rm", "rm x", true},
		{"rm", "rmdir x", false},
		{"npm publish", "npm --prefix x publish", true},
		{"npm publish", "npm run publish-docs", false},
		{"docker run * --privileged", "docker run --rm --privileged x", true},
		{"docker run * --privileged", "docker run --rm x", false},
		{"kubectl * delete *", "kubectl -n x get delete", true},
		{"kubectl * delete", "kubectl get pods", false},
		{"terraform*", "terraform-1.2 apply", true},
		{"*", "ls", true},
		{"/opt/x/tool *", "/opt/x/tool a", true},
		{"/opt/x/tool *", "tool a", false},
		{"cd *", "cd /", true},
		{"xargs *", "xargs ls", true},
	} {
		for kind, config := range map[policy.Decision]policy.Config{
			policy.Deny: {Deny: []string{c.rule}},
			policy.Ask:  {Ask: []string{c.rule}},
		} {
			verdict := newPolicy(t, config).Check(c.command)
			if c.want {
				require.Equal(t, kind, verdict.Decision, "%s %s: %s", kind, c.rule, c.command)
				require.Equal(t, string(kind)+" "+c.rule, verdict.Rule)
				require.Contains(t, verdict.Message, c.rule)
				require.NotContains(t, verdict.Message, "a ask")
			} else {
				require.NotContains(t, []policy.Decision{policy.Deny, policy.Ask}, verdict.Decision, "%s %s: %s: %s", kind, c.rule, c.command, verdict.Message)
			}
		}
	}
}

// Words that may hide a program that a deny rule names are denied; others run.
func TestDenyRulesAndWhatIsNotKnown(t *testing.T) {
	p := newPolicy(t, policy.Config{Deny: []string{"git push *"}})
	for _, command := range []string{
		"$x push", "$(pick) a", "gi$x push", "git $x", "git p$x", "git -C d $x", "git $(echo push)", "sh -c \"$x\"", "echo x | sh", "eval $x",
		"python3 -c 'import os; os.system(x)'", "perl -e 'system $x'", ". <(pick)", ". \"$x\"", "a='x[$(git push)]'; echo $((a))", "awk 'BEGIN{system(x)}'", "git -c alias.p=push p",
		"PATH=/x ls", "LD_PRELOAD=x ls", "PROMPT_COMMAND=x", "${!v} push", "xargs sh -c", "echo push | xargs git", "$@git push", "{git,push}",
	} {
		require.True(t, p.Check(command).Refused(), command)
	}
	for _, command := range []string{
		"git commit -m \"$x\"", "git commit -m \"$(cat <<'E'\nfix push\nE\n)\"", "git add *.go", "make test", "./build.sh", "python3 x.py", "python3 -c 'print(1)'", "perl -e 1", ". ./x", "bash x.sh", "git commit -m \"$x\"", "git log $x", "echo $(git rev-parse HEAD)", "x$y push",
		"ls $x", "go test ./...", "git pull", "sed 's/a/b/' f", "awk '{print $1}' f", "for f in *; do cat $f; done",
	} {
		require.False(t, p.Check(command).Refused(), "%s: %s", command, p.Check(command).Message)
	}
}

func TestAllowList(t *testing.T) {
	p := newPolicy(t, policy.Config{
		Mode:  policy.AllowList,
		Allow: []string{"git status", "git diff *", "go test ./...", "go build *", "ls *", "make *", "wc *", "find *", "npm run test*", "curl *"},
		Deny:  []string{"git diff --output *"},
		Ask:   []string{"go build -o *"},
	})
	for command, want := range map[string]policy.Decision{
		"git status":                              policy.Allow,
		"git status -s":                           policy.Deny,
		"git diff":                                policy.Allow,
		"git diff HEAD~1 -- x":                    policy.Allow,
		"git diff \"$x\"":                         policy.Deny, // may be --output
		"git diff -- \"$x\" *.go":                 policy.Allow,
		"git -c alias.diff='!x' diff":             policy.Deny,
		"git diff --output=x":                     policy.Deny,
		"/usr/bin/git status":                     policy.Allow,
		"./git status":                            policy.Deny,
		"/x/git status":                           policy.Deny,
		"go test ./...":                           policy.Allow,
		"go test ./... -v":                        policy.Deny,
		"cd x && go test ./...":                   policy.Allow,
		"timeout 5 go test ./... | wc -l":         policy.Allow,
		"bash -c 'ls; git status'":                policy.Allow,
		"bash -c 'ls; rm x'":                      policy.Deny,
		"eval ls":                                 policy.Allow,
		"go build -o x .":                         policy.Ask,
		"go build ./...":                          policy.Allow,
		"make test":                               policy.Allow,
		"find . -exec ls {} +":                    policy.Allow,
		"find . -exec rm {} +":                    policy.Deny,
		"find . | xargs wc -l":                    policy.Allow,
		"find . | xargs rm":                       policy.Deny,
		"npm run test:unit":                       policy.Allow,
		"rm x":                                    policy.Deny,
		"$x y":                                    policy.Deny,
		"ls $(rm x)":                              policy.Deny,
		"ls $(wc x)":                              policy.Allow,
		"ls > out; echo $?":                       policy.Allow,
		"echo x | sh":                             policy.Deny,
		"source x":                                policy.Deny,
		"f() { ls; }; f":                          policy.Allow,
		"f() { rm x; }; f":                        policy.Deny,
		"for f in a b; do ls $f; done":            policy.Allow,
		"rm() { ls; }; rm x":                      policy.Allow,
		"rm x; rm() { ls; }":                      policy.Deny,
		"rm() { ls; }; command rm x":              policy.Deny,
		"rm() { ls; }; env rm x":                  policy.Deny,
		"rm() { ls; }; bash -c 'rm x'":            policy.Deny,
		"rm() { ls; }; eval 'rm x'":               policy.Allow,
		"rm() { ls; }; ls | xargs rm":             policy.Deny,
		"rm() { ls; }; find . -exec rm {} +":      policy.Deny,
		"rm() { ls; }; unset -f rm; rm x":         policy.Deny,
		"rm() { ls; }; builtin unset -f rm; rm x": policy.Deny,
		"rm() { ls; }; eval unset -f rm; rm x":    policy.Deny,
		"false && rm() { ls; }; rm x":             policy.Deny,
		"false && for a in ls; do :; done; $a":    policy.Deny,
		"a=ls; declare -n r=a; r=rm; $a x":        policy.Deny,
		"a=ls; f() { local a; $a rm x; }; f":      policy.Deny,
		"declare -l a=RM; $a x":                   policy.Deny,
		"export \"a=rm\"; $a x":                   policy.Deny,
		"export a=ls; $a x":                       policy.Allow,
		"a=ls; $a; a=rm":                          policy.Deny,
		"bash <(echo rm x)":                       policy.Deny,
		"zsh -c ls":                               policy.Deny,
		"a=ls; $a":                                policy.Allow,
		"false && a=ls; $a":                       policy.Deny,
		"$a; a=ls":                                policy.Deny,
		"curl https://example.com":                policy.Allow,
		"sudo ls":                                 policy.Deny,
		"PATH=/x:$PATH ls":                        policy.Deny,
		"command ls && builtin echo x":            policy.Allow,
		"busybox ls x":                            policy.Allow,
		"unshare -r ls":                           policy.Deny,
		"":                                        policy.Allow,
		"# nothing":                               policy.Allow,
		"x=1":                                     policy.Allow,
		"if":                                      policy.Deny,
	} {
		require.Equal(t, want, p.Check(command).Decision, "%s: %s %v", command, p.Check(command).Message, p.Check(command).Doubts)
	}
	// Whatever is undecided by default is refused here.
	open := newPolicy(t, policy.Config{Mode: policy.AllowList, Allow: []string{"*"}})
	for _, command := range table(t, "flagged.txt") {
		verdict := open.Check(command)
		if len(verdict.Doubts) > 0 {
			require.True(t, verdict.Refused(), command)
		}
	}
	for _, a := range attacks(t) {
		if a.want != "allow" {
			require.True(t, open.Check(a.command).Refused(), a.name)
		}
	}
}

func TestAllowRulesAndBans(t *testing.T) {
	const command = "curl https://example.com"
	for _, c := range []struct {
		allow string
		want  policy.Decision
	}{
		{"*", policy.Deny}, {"c* *", policy.Deny}, {"curl *", policy.Allow}, {"curl https://example.com", policy.Allow}, {"curl http:*", policy.Deny}, {"wget *", policy.Deny},
	} {
		require.Equal(t, c.want, newPolicy(t, policy.Config{Allow: []string{c.allow}}).Check(command).Decision, c.allow)
	}
	require.Equal(t, policy.Deny, newPolicy(t, policy.Config{Allow: []string{"curl *"}, Deny: []string{"curl *"}}).Check(command).Decision)
	require.Equal(t, policy.Deny, newPolicy(t, policy.Config{Allow: []string{"sudo *"}}).Check("sudo ls").Decision)
	require.Equal(t, policy.Ask, newPolicy(t, policy.Config{Network: true, Ask: []string{"curl *"}}).Check(command).Decision)
	require.Equal(t, policy.Allow, newPolicy(t, policy.Config{Network: true}).Check("exec 3<>/dev/tcp/example.com/80").Decision)
}

func TestConfigNamesItsFault(t *testing.T) {
	for _, c := range []struct {
		config policy.Config
		want   string
	}{
		{policy.Config{Mode: "open"}, `--policy "open"`},
		{policy.Config{Deny: []string{" "}}, "deny rule is empty"},
		{policy.Config{Allow: []string{"git push; ls"}}, "allow rule"},
		{policy.Config{Ask: []string{"rm 'x y'"}}, "ask rule"},
		{policy.Config{Ask: []string{"rm\x00"}}, "control character"},
		{policy.Config{Deny: []string{strings.Repeat("x", 2000)}}, "longer than"},
	} {
		_, err := policy.New(c.config)
		require.ErrorContains(t, err, c.want)
	}
}

func TestVerdictSaysWhatAndWhatNext(t *testing.T) {
	p := newPolicy(t, policy.Config{Deny: []string{"git push *"}, Ask: []string{"npm publish"}})
	verdict := p.Check("ls; timeout 5 c''url -s https://example.com | jq .")
	require.Equal(t, "curl", verdict.Name)
	require.Equal(t, "timeout 5 c''url -s https://example.com", verdict.Command)
	for _, part := range []string{"curl is refused", "network is off", "(rule: network clients)", "timeout 5 c''url", "--net on", "localhost"} {
		require.Contains(t, verdict.Message, part)
	}
	require.True(t, toolerr.Is(verdict.Err(), toolerr.CommandDenied))
	require.Equal(t, verdict.Message, verdict.Err().Error())

	data, err := json.Marshal(newPolicy(t, policy.Config{}).Check("python3 -c 1").Metadata())
	require.NoError(t, err)
	require.JSONEq(t, `{"decision":"undecided","command":"python3 -c 1","undecided":[
		{"command":"python3 -c 1","reason":"python3 -c runs code of another language"}]}`, string(data))
	require.NoError(t, newPolicy(t, policy.Config{}).Check("python3 -c 1").Err())

	require.Contains(t, p.Check("git push").Message, "(rule: deny git push *)")
	require.Contains(t, p.Check("npm publish").Message, "needs the user's approval")
	require.Equal(t, map[string]any{"decision": "allow"}, p.Check("ls").Metadata())
	require.Contains(t, p.Check("if").Message, "does not parse")
	for command, want := range map[string]string{
		"sed -f s.sed a":       "sed reads its script from a file; give the script itself, with -e",
		"sed $OPTIONS p a":     "the options of sed are known only at run time; write them and the script without variables",
		"sed -e \"$SCRIPT\" a": "the script of sed is known only at run time; write it without variables",
		"sed -n 1e a":          "the script of sed runs commands or writes files (e, w), or is too complex to check",
		"awk $OPTIONS '{}' a":  "the options of awk are known only at run time; write them and the program without variables",
	} {
		require.Contains(t, p.Check(command).Message, want+" (rule: deny git push *)", command)
		require.Contains(t, p.Check(command).Message, "or ask the user to run it.", command)
	}
}

// A message quotes only printable text, and little of it.
func TestMessagesArePrintableAndShort(t *testing.T) {
	p := newPolicy(t, policy.Config{})
	for _, command := range []string{
		"curl '\x1b[31m\u202e\xff\x07'", "curl " + strings.Repeat("x", 60_000), "$'\\e[2J'/x/y $(curl x)", "'\x1b'/a b", "if '\x1b]0;x",
	} {
		message := p.Check(command).Message
		require.Less(t, len(message), 1200)
		require.NotRegexp(t, `[\x00-\x08\x0a-\x1f\x7f]`, message, "%q", command)
		require.NotContains(t, message, "\u202e")
	}
}

func TestInvisibleCharacters(t *testing.T) {
	p := newPolicy(t, policy.Config{})
	for _, command := range []string{
		"ls\x1b[1m", "ls \u200b", "l\u00ads", "ls\u202e", "ls # \u202e x", "ls\x00", "echo 'a\x00b'", "ls\x7f", "ls\rx", "\ufeffls", "ls \U000e0041", "echo \"$(l\u200bs)\"",
		"ls\u2028x", "echo \u3164",
	} {
		verdict := p.Check(command)
		require.True(t, verdict.Refused(), "%q", command)
	}
	for _, command := range []string{
		"ls\r\nls\r\n", "ls\t-l", "echo 'a\x1b[1m\u200bb'", "echo \"\u202e\"", "echo ✔️ é 日本", "cat <<E\n\u200b\x1b\nE", "printf '\\033[1m'",
	} {
		require.Equal(t, policy.Allow, p.Check(command).Decision, "%q: %s", command, p.Check(command).Message)
	}
	require.Equal(t, policy.Undecided, p.Check("ls\u00a0-l").Decision)
}

func TestBounds(t *testing.T) {
	p := newPolicy(t, policy.Config{})
	nest := func(depth int) string {
		command := "curl x"
		for range depth {
			command = "eval $'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(command) + "'"
		}
		return command
	}
	for name, command := range map[string]string{
		"text":        "echo " + strings.Repeat("x", 64<<10),
		"nodes":       strings.Repeat("a;", 21_000),
		"parentheses": strings.Repeat("(", 30_000),
		"nesting":     strings.Repeat("{ ", 200) + "ls" + strings.Repeat("; }", 200),
		"subst":       strings.Repeat("$(", 300) + "ls" + strings.Repeat(")", 300),
		"texts":       nest(7),
		"wrappers":    strings.Repeat("env ", 40) + "ls",
		"values":      "a=" + strings.Repeat("x", 1000) + "; echo " + strings.Repeat("$a", 1000),
		"eval fan":    "for a in 1 2 3 4 5 6 7 8; do for b in 1 2 3 4; do eval \"eval \\\"eval $a $b; eval $b $a\\\"; $(" + strings.Repeat("x;", 500) + ")\"; done; done;" + strings.Repeat("x;", 9000),
	} {
		verdict := p.Check(command)
		require.Equal(t, policy.Deny, verdict.Decision, name)
		require.Equal(t, "bounds", verdict.Rule, "%s: %s", name, verdict.Message)
	}
	require.Equal(t, "network clients", p.Check(nest(6)).Rule)
	for _, command := range []string{
		"echo " + strings.Repeat("{a,b}", 40), "echo {1..999999999}", "echo {a,b}{1..99999999999999999999}", "echo {1..9223372036854775807..9223372036854775807}",
		"echo {-9223372036854775808..9223372036854775807}",
		"echo " + strings.Repeat("{a,b", 15_000), "echo " + strings.Repeat("{", 60_000), // braces that cost with their cube
	} {
		require.Equal(t, policy.Allow, p.Check(command).Decision, command)
	}
	require.True(t, p.Check(strings.Repeat("{ls,", 500)+strings.Repeat("}", 500)).Decision != policy.Allow)
}

// A policy has no state: many goroutines get the same answers.
func TestConcurrentChecks(t *testing.T) {
	p := newPolicy(t, policy.Config{Deny: []string{"git push *"}})
	commands := table(t, "hits.txt")
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for _, command := range commands {
				if !p.Check(command).Refused() {
					t.Errorf("%q passes", command)
				}
			}
		})
	}
	group.Wait()
}

// If there are only ask rules, the user is asked about a command that may hide
// another one; with deny rules it would be denied.
func TestHiddenCommandsAreAskedAbout(t *testing.T) {
	p := newPolicy(t, policy.Config{Network: true, Ask: []string{"git push *"}})
	for _, command := range []string{
		`git -c alias.x=push x o main`,
		`git rebase -x 'git push o main' HEAD~1`,
		`GIT_EDITOR='git push o main;:' git commit --amend`,
		`git grep -O'git push o main;:' a`,
		`git difftool -y -x 'git push o main;:' HEAD~1`,
		`GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.x GIT_CONFIG_VALUE_0=push git x o main`,
		`$x push`,
	} {
		require.Equal(t, policy.Ask, p.Check(command).Decision, command)
	}
	for _, command := range []string{"git status", "make test", "go test ./...", "npm run build", "echo git push"} {
		require.NotContains(t, []policy.Decision{policy.Ask, policy.Deny}, p.Check(command).Decision, command)
	}
}
