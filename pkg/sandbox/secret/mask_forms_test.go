package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/secret"
)

// secretForms returns the ways in which programs that read .env files write a
// value, with S for each part of it that must not be seen.
func secretForms(t *testing.T) (forms map[string]string) {
	raw, err := os.ReadFile(filepath.Join("testdata", "forms.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &forms))
	require.Greater(t, len(forms), 40)
	return forms
}

// fill replaces each S that is a word by a different secret.
func fill(form string) (text string, secrets []string) {
	return regexp.MustCompile(`\bS\b`).ReplaceAllStringFunc(form, func(string) string {
		secret := fmt.Sprintf("hunter%dq", 10+len(secrets))
		secrets = append(secrets, secret)
		return secret
	}), secrets
}

// No form of a value is seen, whatever is before and behind it and however
// lines end.
func TestNoFormOfAValueIsSeen(t *testing.T) {
	around := []string{"", "# about\n", "A=1\n", "A='it\n", "\n", "export B=\"x\"\n", "C: d\n", "# it's\n", "D=don't\n", "[s]\n", "E=\"a\nb\"\n"}
	for name, form := range secretForms(t) {
		for _, before := range around {
			for _, behind := range around {
				for _, ending := range []string{"\n", "\r\n", "\r"} {
					text, secrets := fill(before + form + behind)
					if ending == "\r" && strings.Contains(form, "\r") {
						continue
					}
					if strings.Contains(name, "(sh)") && strings.Count(before, "'") == 1 && before[0] != '#' {
						continue // to a shell the quote before is a part of it
					}
					text = strings.ReplaceAll(text, "\n", ending)
					out := string(secret.Mask([]byte(text)))
					for _, secret := range secrets {
						require.NotContains(t, out, secret, "%s: %q is shown as %q", name, text, out)
					}
					require.Equal(t, strings.Count(text, "\n"), strings.Count(out, "\n"))
					require.Equal(t, strings.Count(text, "\r"), strings.Count(out, "\r"))
				}
			}
		}
	}
}

// nodeLine is how the dotenv of Node finds names and values.
var nodeLine = regexp.MustCompile("(?m)^\\s*(?:export\\s+)?([\\w.-]+)(?:\\s*=\\s*?|:\\s+?)(\\s*'(?:\\\\'|[^'])*'|\\s*\"(?:\\\\\"|[^\"])*\"|\\s*`(?:\\\\`|[^`])*`|[^#\r\n]+)?\\s*(?:#.*)?$")

// scribble is a text of what matters to such programs, with words that tell
// where they come from.
func scribble(r *rand.Rand) string {
	pieces := []string{"K=", "K =", "export K=", "K: ", "\"", "'", "`", "\"", "'", "\\", "\n", "\n", "\n", "\n", "#", "# ", " ", "\"\"\"", "=", "$", ";"}
	var text strings.Builder
	for i := range 4 + r.IntN(24) {
		if r.IntN(3) == 0 {
			fmt.Fprintf(&text, "w%dx", 100+i)
		} else {
			text.WriteString(pieces[r.IntN(len(pieces))])
		}
	}
	text.WriteString("\n")
	return text.String()
}

var scribbled = regexp.MustCompile(`w[0-9]+x`)

// What the dotenv of Node takes for a value is never seen.
func TestMasksWhatNodeReads(t *testing.T) {
	r := rand.New(rand.NewPCG(22, 1))
	values := 0
	for range 100_000 {
		text := scribble(r)
		out := secret.Mask([]byte(text))
		for _, match := range nodeLine.FindAllStringSubmatch(text, -1) {
			for _, word := range scribbled.FindAllString(match[2], -1) {
				values++
				if bytes.Contains(out, []byte(word)) {
					require.Fail(t, "seen", "%q in %q: %q", word, text, out)
				}
			}
		}
	}
	require.Greater(t, values, 10_000)
}

// Ordinary files keep their names and comments.
func TestOrdinarySettingsStayReadable(t *testing.T) {
	const text = `# Database
DB_HOST=localhost
DB_URL="postgres://u:p@h/x?a=b" # keep
# it's the port
PORT=8080

export GREETING='hello world'
NOTE="it's fine"
EMPTY=
; old style
JSON={"a":"b"}
TAG=a<b
`
	const want = `# Database
DB_HOST=***
DB_URL=***
# it's the port
PORT=***

export GREETING=***
NOTE=***
EMPTY=
; old style
JSON=***
TAG=***
`
	require.Equal(t, want, string(secret.Mask([]byte(text))))
}
