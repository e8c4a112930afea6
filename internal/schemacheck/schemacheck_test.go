package schemacheck_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/internal/schemacheck"
)

func TestFaultsAreToldByPointer(t *testing.T) {
	s, err := schemacheck.Compile(json.RawMessage(`{"type":"object","properties":{"a/b":{"type":"integer"},"c":{"enum":[1]}},"required":["c"]}`))
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
		require.Equal(t, value == `{}`, faults.OnlyMissing)
	}
	faults, err := s.Check(json.RawMessage(`{`))
	require.NoError(t, err)
	require.NotEmpty(t, faults.Text, "what is no JSON does not conform")
}

func TestASchemaReadsNothingElse(t *testing.T) {
	for _, text := range []string{`{"$ref":"file:///etc/passwd"}`, `{"$ref":"http://127.0.0.1/s"}`, `{"type":12}`, `[`, `12`} {
		_, err := schemacheck.Compile(json.RawMessage(text))
		require.Error(t, err, text)
	}
}

// Alternatives nested within alternatives would take practically infinite time.
func TestACheckIsBounded(t *testing.T) {
	defs := `"0":{"type":"null"}`
	for n := range 14 {
		defs += fmt.Sprintf(`,"%d":{"anyOf":[{"$ref":"#/$defs/%d"},{"$ref":"#/$defs/%[2]d"}]}`, n+1, n)
	}
	s, err := schemacheck.Compile(json.RawMessage(`{"$ref":"#/$defs/14","$defs":{` + defs + `}}`))
	require.NoError(t, err)
	_, err = s.Check(json.RawMessage(`1`))
	require.ErrorContains(t, err, "too many steps")
}

// A server may write schemas that are expensive to check in ways other than
// applying many subschemas.
func TestNothingOfASchemaTakesForEver(t *testing.T) {
	chain := func(depth int, leaf, of string) string {
		defs := `"0":` + leaf
		for n := range depth {
			ref := fmt.Sprintf(`{"$ref":"#/$defs/%d"}`, n)
			defs += fmt.Sprintf(`,"%d":%s`, n+1, strings.ReplaceAll(of, "NEXT", ref))
		}
		return fmt.Sprintf(`"$ref":"#/$defs/%d","$defs":{%s}`, depth, defs)
	}
	numbers := strings.Repeat(",1", 20_000)
	var patterns, names, enum []string
	for i := range 1_000 {
		patterns = append(patterns, fmt.Sprintf(`"^x*%d$":true`, i))
		names = append(names, fmt.Sprintf(`"%d":1`, i))
		enum = append(enum, fmt.Sprint(i+10))
	}
	for name, c := range map[string]struct{ schema, value string }{
		"failing, where only whether is asked": {`{"not":{"$ref":"#/$defs/60"},` + strings.TrimPrefix(chain(60, `{"type":"null"}`, `{"dependentSchemas":{"a":NEXT,"b":NEXT}}`), `"$ref":"#/$defs/60",`) + `}`, `{"a":1,"b":1}`},
		"alternatives of constants":            {`{` + chain(40, `{"const":1}`, `{"oneOf":[NEXT,NEXT]}`) + `}`, `2`},
		"patterns of names":                    {`{"patternProperties":{` + strings.Join(patterns, ",") + `}}`, `{` + strings.Join(names, ",") + `}`},
		"an enumeration":                       {`{"items":{"enum":[` + strings.Join(enum, ",") + `]}}`, `[1` + numbers + `]`},
		"an enumeration for each of them":      {`{"items":{"anyOf":[` + strings.Repeat(`{"const":2},`, 400) + `{"const":3}]}}`, `[1` + numbers + `]`},
		"patterns of a long text":              {`{"anyOf":[` + strings.Repeat(`{"pattern":"(x+y?){50}z$"},`, 50) + `{"type":"null"}]}`, `"` + strings.Repeat("x", 500_000) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := schemacheck.Compile(json.RawMessage(c.schema))
			require.NoError(t, err)
			faults, err := s.Check(json.RawMessage(c.value))
			require.Nil(t, faults)
			if len(c.value) < 256 {
				require.ErrorContains(t, err, "too many steps")
			}
		})
	}
	for name, text := range map[string]string{
		"numbers": `{"multipleOf":1e999999}`, "digits": `{"enum":[` + strings.Repeat("1", 100_000) + `]}`, "size": `{"enum":["` + strings.Repeat("x", 300<<10) + `"]}`,
		"dynamic": `{"$dynamicRef":"#a","$defs":{"a":{"$dynamicAnchor":"a"}}}`,
	} {
		_, err := schemacheck.Compile(json.RawMessage(text))
		require.Error(t, err, name)
	}
}

// An expensive value is not the schema's fault: one caller's value does not end
// the checks for all other callers.
func TestAValueDoesNotSpoilASchema(t *testing.T) {
	for schema, value := range map[string]string{
		`{"items":{"oneOf":[` + strings.Repeat(`{"const":"a"},`, 30) + `{"type":"integer"}]}}`: `[1` + strings.Repeat(",1", 20_000) + `]`,
		`{"items":{"type":"integer","minimum":0}}`:                                             `[1e9999999]`,
		`{"items":{"type":"integer","multipleOf":1}}`:                                          `[` + strings.Repeat("9", 10_000) + `]`,
	} {
		s, err := schemacheck.Compile(json.RawMessage(schema))
		require.NoError(t, err)
		faults, err := s.Check(json.RawMessage(value))
		require.NoError(t, err, schema)
		require.Nil(t, faults, schema)
		faults, err = s.Check(json.RawMessage(`["x"]`))
		require.NoError(t, err)
		require.NotNil(t, faults, "%s is not used any more", schema)
	}
}

// A pattern that is large when its repetitions are expanded is not compiled.
func TestPatternsAreBounded(t *testing.T) {
	large := strings.Repeat("x{1000}", 1_000)
	s, err := schemacheck.Compile(json.RawMessage(`{"properties":{"a":{"pattern":"` + large + `"},"b":{"pattern":"^[0-9]{3,500}$"}}}`))
	require.NoError(t, err)
	faults, err := s.Check(json.RawMessage(`{"a":"y","b":"x"}`))
	require.NoError(t, err)
	require.Equal(t, "/b", faults.Path)
	require.NotContains(t, faults.Text, "/a")
}
