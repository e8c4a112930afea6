package mcpkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/toolroom-mcp/toolroom/pkg/mcpkit"
	"github.com/toolroom-mcp/toolroom/pkg/toolerr"
)

func ExampleTimeout() {
	slow, err := mcpkit.NewTool(mcpkit.Def{Name: "slow"}, func(ctx context.Context, _ struct{}) (*mcpkit.Result, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(slow.With(mcpkit.Timeout(time.Millisecond)).Call(context.Background(), nil).Code)
	// Output: TIMEOUT
}

func ExampleTool_Call() {
	t, err := mcpkit.NewTool(mcpkit.Def{Name: "add"}, func(context.Context, struct {
		N int `json:"n"`
	}) (*mcpkit.Result, error) {
		return &mcpkit.Result{Text: "added"}, nil
	})
	if err != nil {
		panic(err)
	}
	for _, args := range []string{`{}`, `{"n":"many"}`, `{"n":1}`} {
		res := t.Call(context.Background(), json.RawMessage(args))
		fmt.Println(errors.Is(res.Err, toolerr.ErrInvalidArguments), res.Code)
	}
	// Output:
	// true MISSING_PARAMETER
	// true INVALID_PARAMS
	// false
}
