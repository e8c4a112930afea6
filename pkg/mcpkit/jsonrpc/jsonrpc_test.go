package jsonrpc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/pkg/mcpkit/jsonrpc"
)

func TestSplit(t *testing.T) {
	m, err := jsonrpc.Split([]byte(` {"jsonrpc" : "2.0","id": "a\u0062" ,"method":"tools/call","params":{"x":[1,{"y":"}"}]}, "more":1} `))
	require.NoError(t, err)
	require.Equal(t, jsonrpc.Request, m.Kind)
	require.Equal(t, `"a\u0062"`, string(m.ID))
	require.Equal(t, "tools/call", m.Method)
	require.Equal(t, `{"x":[1,{"y":"}"}]}`, string(m.Params))

	m, err = jsonrpc.Split([]byte(`{"jsonrpc":"2.0","method":"notifications\/initialized"}`))
	require.NoError(t, err)
	require.Equal(t, jsonrpc.Notification, m.Kind)
	require.Equal(t, "notifications/initialized", m.Method)
	require.Nil(t, m.ID)

	m, err = jsonrpc.Split([]byte(`{"id":7,"result":null,"jsonrpc":"2.0"}`))
	require.NoError(t, err)
	require.Equal(t, jsonrpc.Response, m.Kind)
	require.Equal(t, "null", string(m.Result))

	m, err = jsonrpc.Split([]byte(`{"id":null,"error":{"code":-32700},"jsonrpc":"2.0"}`))
	require.NoError(t, err)
	require.Equal(t, jsonrpc.Response, m.Kind)
}

func TestSplitRefuses(t *testing.T) {
	const parse, request = jsonrpc.CodeParse, jsonrpc.CodeInvalidRequest
	for name, c := range map[string]struct {
		line string
		code int
		id   string
	}{
		"no JSON":             {`hello`, parse, ""},
		"cut short":           {`{"jsonrpc":"2.0","id":1,"method":"x"`, parse, ""},
		"two values":          {`{"jsonrpc":"2.0","id":1,"method":"x"}{}`, parse, ""},
		"trailing comma":      {`{"jsonrpc":"2.0","id":1,}`, parse, ""},
		"bad in params":       {`{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":01}}`, parse, ""},
		"not UTF-8":           {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\",\"params\":{\"a\":\"\xff\"}}", parse, ""},
		"control in a string": {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"x\ty\"}", parse, ""},
		"too deep":            {strings.Repeat("[", 100000), parse, ""},
		"batch":               {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, request, ""},
		"scalar":              {`42`, request, ""},
		"null":                {`null`, request, ""},
		"empty object":        {`{}`, request, ""},
		"no version":          {`{"id":1,"method":"ping"}`, request, "1"},
		"another version":     {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, request, "1"},
		"version as number":   {`{"jsonrpc":2.0,"id":1,"method":"ping"}`, request, "1"},
		"id twice":            {`{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}`, request, ""},
		"method twice":        {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, request, "1"},
		"method twice hidden": {`{"jsonrpc":"2.0","id":1,"method":"ping","meth\u006fd":"tools/call"}`, request, "1"},
		"other case":          {`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, request, "1"},
		"other case beside":   {`{"jsonrpc":"2.0","id":1,"method":"ping","METHOD":"tools/call"}`, request, "1"},
		"long s":              {`{"jsonrpc":"2.0","id":1,"method":"ping","paramſ":{}}`, request, "1"},
		"null id":             {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, request, ""},
		"fractional id":       {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, request, ""},
		"object id":           {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, request, ""},
		"boolean id":          {`{"jsonrpc":"2.0","id":true,"method":"ping"}`, request, ""},
		"method no string":    {`{"jsonrpc":"2.0","id":"x","method":1}`, request, `"x"`},
		"empty method":        {`{"jsonrpc":"2.0","id":"x","method":""}`, request, `"x"`},
		"method and result":   {`{"jsonrpc":"2.0","id":1,"method":"x","result":{}}`, request, "1"},
		"result and error":    {`{"jsonrpc":"2.0","id":1,"error":{},"result":{}}`, request, "1"},
		"neither":             {`{"jsonrpc":"2.0","id":1}`, request, "1"},
		"response without id": {`{"jsonrpc":"2.0","result":{}}`, request, ""},
		"params no structure": {`{"jsonrpc":"2.0","id":1,"method":"x","params":"y"}`, request, "1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := jsonrpc.Split([]byte(c.line))
			var fault *jsonrpc.Error
			require.ErrorAs(t, err, &fault)
			require.Equal(t, c.code, fault.Code, fault.Message)
			require.Equal(t, c.id, string(fault.ID))
			require.NotEmpty(t, fault.Message)
		})
	}
}

func TestKey(t *testing.T) {
	same := [][2]string{{`"a"`, `"\u0061"`}, {`1`, `1.0`}, {`100`, `1e2`}}
	for _, pair := range same {
		a, err := jsonrpc.Key(json.RawMessage(pair[0]))
		require.NoError(t, err)
		b, err := jsonrpc.Key(json.RawMessage(pair[1]))
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
	a, _ := jsonrpc.Key(json.RawMessage(`1`))
	b, _ := jsonrpc.Key(json.RawMessage(`"1"`))
	require.NotEqual(t, a, b, "a number and a string are two ids")
	a, _ = jsonrpc.Key(json.RawMessage(`9007199254740993`))
	b, _ = jsonrpc.Key(json.RawMessage(`9007199254740992`))
	require.NotEqual(t, a, b, "no float64 in between")
	for _, bad := range []string{"", "null", "true", "[]", "{}", "1.5", "1e400", "1e-1"} {
		_, err := jsonrpc.Key(json.RawMessage(bad))
		require.Error(t, err, bad)
	}
}

func TestBuild(t *testing.T) {
	id := json.RawMessage(`1.0`)
	require.Equal(t, `{"jsonrpc":"2.0","id":1.0,"method":"a<b","params":{"x":1}}`,
		string(jsonrpc.AppendRequest(nil, id, "a<b", json.RawMessage(`{"x":1}`))))
	require.Equal(t, `{"jsonrpc":"2.0","method":"n"}`, string(jsonrpc.AppendNotification(nil, "n", nil)))
	require.Equal(t, `{"jsonrpc":"2.0","id":1.0,"result":{"ok":true}}`,
		string(jsonrpc.AppendResult(nil, id, json.RawMessage(`{"ok":true}`))))
	require.Equal(t, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"a \"b\""}}`,
		string(jsonrpc.AppendError(nil, nil, jsonrpc.CodeParse, `a "b"`)))
}

func TestSetMember(t *testing.T) {
	for _, c := range [][2]string{
		{`{}`, `{"a":1}`},
		{`{ "b" : 2 }`, `{ "b" : 2 ,"a":1}`},
		{`{"a":{"x":"}"},"b":2}`, `{"a":1,"b":2}`},
		{`{"\u0061":7}`, `{"\u0061":1}`},
	} {
		out, err := jsonrpc.SetMember([]byte(c[0]), "a", json.RawMessage("1"))
		require.NoError(t, err)
		require.Equal(t, c[1], string(out))
	}
	_, err := jsonrpc.SetMember([]byte(`[]`), "a", nil)
	require.Error(t, err)
	_, err = jsonrpc.SetMember([]byte(`{"a":1,"a":2}`), "a", nil)
	require.Error(t, err)
}

func FuzzSplit(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,-2.5e3,"\u00e9\n",null,true]}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","id":"a","result":{}}`))
	f.Add([]byte(`[1,2`))
	f.Add([]byte("{\"a\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.Count(line, []byte("["))+bytes.Count(line, []byte("{")) < 1000 {
			require.Equal(t, json.Valid(line) && utf8.Valid(line), jsonrpc.Valid(line) == nil)
		}
		m, err := jsonrpc.Split(line)
		if err != nil {
			var fault *jsonrpc.Error
			require.True(t, errors.As(err, &fault))
			return
		}
		require.True(t, json.Valid(line))
		var std map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(line, &std))
		require.JSONEq(t, string(orNull(std["params"])), string(orNull(m.Params)))
		if m.Kind == jsonrpc.Notification {
			return
		}
		require.JSONEq(t, string(orNull(std["id"])), string(m.ID))
	})
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// The word-at-a-time string scan must find every special byte at every offset.
func TestStringsAtEveryOffset(t *testing.T) {
	for n := range 20 {
		pad := strings.Repeat("é", n/2) + strings.Repeat("x", n%2)
		for _, good := range []string{`\"`, `\\`, `\u00e9`, "\x7f", " ", "!", "[", "]", "😀"} {
			require.NoError(t, jsonrpc.Valid([]byte(`"`+pad+good+pad+`"`)), "%q %q", pad, good)
		}
		for _, bad := range []string{"\x00", "\x1f", "\n", `"`, `\x`, `\u12g4`, "\xc3", "\xed\xa0\x80"} {
			require.Error(t, jsonrpc.Valid([]byte(`"`+pad+bad+pad+`"`)), "%q %q", pad, bad)
		}
	}
}

func BenchmarkSplit(b *testing.B) {
	for name, line := range map[string][]byte{
		"64B": []byte(`{"jsonrpc":"2.0","id":12,"method":"tools/call","params":{"name":"echo","arguments":{"text":"` + strings.Repeat("x", 64) + `"}}}`),
		"1M":  []byte(`{"jsonrpc":"2.0","id":12,"result":{"content":[{"type":"text","text":"` + strings.Repeat("some text of a file, ", 50000) + `"}]}}`),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(line)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := jsonrpc.Split(line); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
