package conform_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/conform"
)

func TestFaultsAreToldByPointer(t *testing.T) {
	s, err := conform.Compile(json.RawMessage(`{"type":"object","properties":{"a/b":{"type":"integer"},"c":{"enum":[1]}},"required":["c"]}`))
	require.NoError(t, err)
	for value, want := range map[string]string{
		`{"c":1}`:           "",
		`{"c":1,"a/b":1.0}`: "",
		`{"c":1,"a/b":"x"}`: "/a~1b: got string, want integer",
		`{}`:                "missing property 'c'",
		`[]`:                "got array, want object",
	} {
		faults, err := s.Check(json.RawMessage(value))
		require.NoError(t, err)
		if want == "" {
			require.Nil(t, faults, value)
			continue
		}
		require.Contains(t, faults.Text, want)
		require.Equal(t, value == `{}`, faults.Missing)
	}
	faults, err := s.Check(json.RawMessage(`{`))
	require.NoError(t, err)
	require.NotEmpty(t, faults.Text, "what is no JSON does not conform")
}

func TestASchemaReadsNothingElse(t *testing.T) {
	for _, text := range []string{`{"$ref":"file:///etc/passwd"}`, `{"$ref":"http://127.0.0.1/s"}`, `{"type":12}`, `[`, `12`} {
		_, err := conform.Compile(json.RawMessage(text))
		require.Error(t, err, text)
	}
}

// Alternatives within alternatives would take for ever.
func TestACheckIsBounded(t *testing.T) {
	defs := `"0":{"type":"null"}`
	for n := range 14 {
		defs += fmt.Sprintf(`,"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%[2]d"}]}`, n+1, n)
	}
	s, err := conform.Compile(json.RawMessage(`{"$ref":"#/$defs/14","$defs":{` + defs + `}}`))
	require.NoError(t, err)
	_, err = s.Check(json.RawMessage(`1`))
	require.ErrorContains(t, err, "too many steps")
}
