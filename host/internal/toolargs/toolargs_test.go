package toolargs_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/host/internal/toolargs"
)

func TestObject(t *testing.T) {
	schema := json.RawMessage(`{"properties":{"s":{"type":"string"},"n":{"type":"integer"},"l":{"type":"array"}}}`)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{nil, `{}`}, {[]string{"s=7", "n=7", "l=[1,2]", "o=true"}, `{"l":[1,2],"n":7,"o":true,"s":"7"}`}, {[]string{"n=x=y", "s="}, `{"n":"x=y","s":""}`}, {[]string{` {"a":1}`}, ` {"a":1}`},
	} {
		got, err := toolargs.Parse(schema, c.words)
		require.NoError(t, err)
		require.Equal(t, c.want, string(got))
	}
	for _, words := range [][]string{{"a"}, {"=a"}, {"a=1", "a=2"}, {"{"}, {"{}", "a=1"}} {
		_, err := toolargs.Parse(schema, words)
		require.Error(t, err, "%q", words)
	}
}

func TestWords(t *testing.T) {
	for line, want := range map[string][]string{
		"":                     nil,
		` a  b=c `:             {"a", "b=c"},
		`a="b c"d 'e f'`:       {"a=b cd", "e f"},
		`"" ''`:                {"", ""},
		`"a\"b\\c\d" '\"' x\y`: {`a"b\c\d`, `\"`, `x\y`},
		"a\n\tb":               {"a", "b"},
	} {
		got, err := toolargs.SplitWords(line)
		require.NoError(t, err)
		require.Equal(t, want, got, "%q", line)
	}
	for _, line := range []string{`"a`, `'`, `a "b\"`} {
		_, err := toolargs.SplitWords(line)
		require.Error(t, err)
	}
}
