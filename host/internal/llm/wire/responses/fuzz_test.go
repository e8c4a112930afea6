package responses_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/responses"
	"github.com/toolroom-mcp/toolroom/host/internal/llm/wire/tree"
)

// FuzzDecode: whatever a request has, it is refused with the place of the fault, or read
// as messages and tools that are valid.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"input":[{"role":"user","content":"a"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"b"},{"type":"refusal","refusal":"no"}]}]}`,
		`{"input":[{"type":"function_call","call_id":"c","name":"f","namespace":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/png;base64,QQ=="}]}]}`,
		`{"input":[{"type":"custom_tool_call","call_id":"c","name":"f","input":"x"},{"type":"custom_tool_call_output","call_id":"c","output":""},{"type":"reasoning"},{"type":"web_search_call"}]}`,
		`{"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"c","format":{"definition":"g"}}]}]}],"tools":[{"type":"function","name":"f","parameters":null}]}`,
		`{"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"f"}]}}`, `{"input":[7,null,[],{"type":7}]}`, `{"tools":[1,{"type":"function"}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := tree.Parse(body)
		if err != nil {
			return
		}
		placed := func(err error) {
			var fault *responses.RequestError
			if err != nil {
				require.ErrorAs(t, err, &fault)
				require.NotEmpty(t, fault.Path)
			}
		}
		messages, _, err := responses.DecodeItems(v.Get("input"))
		placed(err)
		for _, m := range messages {
			require.NoError(t, m.Validate())
		}
		tools, err := responses.DecodeTools(v.Get("tools"), v.Get("input"))
		placed(err)
		if err == nil {
			for _, one := range tools.Tools {
				require.NotEmpty(t, one.Name)
				require.Equal(t, one.Name, tools.Callable(one.Name).ModelName())
			}
		}
		_, err = responses.DecodeChoice(v.Get("tool_choice"))
		placed(err)
	})
}
