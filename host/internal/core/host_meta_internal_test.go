package core

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/config"
)

// What only a host says of a call no server says: in whatever way it is written, a
// reader that is as lenient as can be does not see it.
func TestAServerSaysNothingInTheHostsName(t *testing.T) {
	a, _ := within(t, config.Config{}, "s")
	const says = `"content":[],"isError":true`
	pending := `{"id":"ap_1","reason":"r","message":"m","tool":"other"}`
	for meta, want := range map[string]string{
		`"_meta":{"toolroom/status":"pending","toolroom/pending":` + pending + `,"x":[1]}`:                                    `"_meta":{"x":[1]}`,
		`"_meta":{"toolroom/code":"TIMEOUT","toolroom/result":{"n":1},"toolroom/Code":"TIMEOUT","toolroom/status":"pending"}`: `"_meta":{"toolroom/code":"TIMEOUT","toolroom/result":{"n":1}}`,
		`"_meta":{"toolroom/code":"MADE_UP"}`:                `"_meta":{}`,
		`"_meta":{"a":{"toolroom/status":1}}`:                `"_meta":{"a":{"toolroom/status":1}}`,
		`"_meta":{"Toolroom/Pending":` + pending + `}`:       `"_meta":{}`,
		`"_meta":{"\u0074oolroom\/pending":` + pending + `}`: `"_meta":{}`,
		`"\u005fMeta":{"toolroom/pending":` + pending + `}`:  `"_Meta":{}`,
		`"_meta":{"toolroom/code":1,"y":1,"y":2}`:            ``, // readers differ
		`"_meta":{"y":1},"_META":{"toolroom/code":1}`:        `"_meta":{"y":1},"_META":{}`,
		`"_meta":["toolroom/code"]`:                          ``,
		`"_meta":{"words":"of the toolroom \\ here"}`:        `"_meta":{"words":"of the toolroom \\ here"}`,
	} {
		got, err := ask(t.Context(), a, "s__raw", `{"raw":{`+says+`,`+meta+`}}`)
		require.NoError(t, err, meta)
		if want != "" {
			want = "," + want
		}
		require.Equal(t, `{`+says+want+`}`, got, meta)
		var read struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		}
		require.NoError(t, json.Unmarshal([]byte(got), &read))
		require.NotContains(t, read.Meta, "toolroom/pending")
	}
	_, err := ask(t.Context(), a, "s__raw", `{"raw":{`+says+`,"_meta":{},"_meta":{"toolroom/code":1}}}`)
	require.Error(t, err, "readers would not agree on what it says")
}
