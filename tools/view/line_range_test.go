package main

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParsePages(t *testing.T) {
	for text, want := range map[string]span{
		`"3"`: {3, 3, true}, `3`: {3, 3, true}, `"1-5"`: {1, 5, false}, `"2-"`: {2, noEnd, true}, `[1,2,3]`: {1, 3, false}, `["4-6"]`: {4, 6, false},
		`"1,3-4"`: {1, 4, false}, `[7,2]`: {2, 7, false}, `"1–2"`: {1, 2, false},
	} {
		got, err := parsePages(json.RawMessage(text))
		require.NoError(t, err, text)
		require.Equal(t, want.first, got.first, text)
		require.Equal(t, want.last, got.last, text)
	}
	for _, text := range []string{`"all"`, `{}`, `"5-3"`, `"-1"`, `true`, `[1,"x"]`, `"99999999999999999999"`} {
		_, err := parsePages(json.RawMessage(text))
		require.Error(t, err, text)
	}
}
