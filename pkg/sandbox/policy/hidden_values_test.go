package policy_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/toolroom-mcp/toolroom/pkg/sandbox/policy"
)

// hiddenValues are commands in which a variable does not have the value that the
// text assigns to it, so that bash runs rm.
var hiddenValues = []string{
	// Attributes that change values which later statements assign.
	"declare -l a; a=RM; $a x",
	"typeset -l a; a=RM; $a x",
	"declare -l -- a; a=RM; $a x",
	"declare -x -l a; a=RM; $a x",
	"declare -lx a; a=RM; $a x",
	"declare '-l' 'a'; a=RM; $a x",
	"o=l; declare -$o a=RM; $a x",
	"o=l; declare -$o a; a=RM; $a x",
	"o=-l; declare $o a; a=RM; $a x",
	"f() { local -l a; a=RM; $a x; }; f",
	"f() { local -l a=RM; $a x; }; f",
	"f() { declare -gl a; }; f; a=RM; $a x",
	"declare -l a; for a in RM; do $a x; done",
	"declare -l a; : ${a:=RM}; $a x",
	"declare -l a; declare a=RM; $a x",
	"declare -l a; a=(RM x); \"${a[@]}\"",
	"declare -l a=(RM x); \"${a[@]}\"",
	"declare -l a\na=RM\n$a x",
	"eval 'declare -l a'; a=RM; $a x",
	"eval 'declare -l a; a=RM; $a x'",
	"bash -c 'declare -l a; a=RM; $a x'",
	"declare -u a; a=rm; eval \"${a,,} x\"",
	"declare -n r=a; a=ls; r=rm; $a x",
	"o=n; declare -$o r=a; a=ls; r=rm; $a x",
	"declare -A a; a=(0 rm); $a x",
	"declare -A a=(0 rm); ${a[0]} x",
	"declare -a a='(rm x)'; \"${a[@]}\"",
	"declare -a a='(rm y)'; $a x",
	"declare -a a; declare 'a=(rm y)'; $a x",
	// Assignments that fail while the command goes on.
	"readonly a; declare a=ls; $a rm x",
	"readonly a\na=ls\n$a rm x",
	"readonly a; eval a=ls; $a rm x",
	"readonly a; for a in ls; do :; done; $a rm x",
	"declare -r a; declare a=ls; $a rm x",
	"declare 'a' -r; readonly 'a'; declare a=ls; $a rm x",
	"local a=ls; $a rm x",
	"declare -Z a=ls; $a rm x",
	"export -l a=ls; $a rm x",
	"readonly -x a=ls; $a rm x",
	"{ false && for a in ls; do :; done; $a rm x; }",
	"export a=ls <nowhere; $a rm x",
	"UID=5; a=ls\n$a rm x",
	"readonly b=1; b=2 a=ls\n$a rm x",
	": $((1/0)); a=ls\n$a rm x",
	"b=$[1/0] a=ls\n$a rm x",
	": ${!nothing}; a=ls\n$a rm x",
	"f() { UID=5; }; f; a=ls\n$a rm x",
	"f() { UID=5; }\nf; a=ls\n$a rm x",
	"UID=5; rm() { :; }\nrm x",
	// Variables that another shell does not get.
	"a=ls; bash -c '$a rm x'",
	"a=ls; bash <<<'$a rm x'",
	"export a=ls; export -n a; bash -c '$a rm x'",
	// Assignments of a part of a variable, with a quoted name.
	"a=r; declare 'a+=m'; $a x",
	"a=r; export 'a+=m'; $a x",
	"a=ls; declare 'a[0]=rm'; $a x",
	"a=ls; printf -v 'a[0]' rm; $a x",
	"a=ls; read 'a[0]' <<<rm; $a x",
	"a=ls; unset 'a[0]'; $a rm x",
	// Arrays that change after a=(…).
	"a=(ls rm x); unset 'a[0]'; \"${a[@]}\"",
	"a=(ls); unset a; \"${a[@]}\" rm x",
	"a=(ls x); a=rm; \"${a[@]}\"",
	"a=(ls x); for a in rm; do \"${a[@]}\"; done",
	"a=(ls x); declare a=rm; \"${a[@]}\"",
	"a=(ls x); a[0]=rm; \"${a[@]}\"",
}

// Values that attributes or failing assignments change are not taken for known.
func TestHiddenValues(t *testing.T) {
	p := newPolicy(t, policy.Config{Deny: []string{"rm *"}})
	for _, command := range hiddenValues {
		require.True(t, p.Check(command).Refused(), command)
	}
	for _, command := range []string{
		"declare a=ls; $a x", "typeset -x a=ls; $a x", "export a=ls; $a x", "export -n a=ls; $a x", "readonly a=ls; $a x", "declare -r a=ls; $a x", "declare -g a=ls; $a x",
		"declare -- a=ls; $a x", "a=ls; export a; $a x", "a=(ls x); \"${a[@]}\"", "declare -a a=(ls x); \"${a[@]}\"", "readonly -a a=(ls x); \"${a[@]}\"",
		"a=ls\n$a x", "true; a=ls\n$a x", "declare a=ls\nb=$((1 + 1))\n$a x", ": $((1 + 1)); a=ls; $a x", "a=ls; b=$((1 + 1))\n$a x",
		"declare -l name=\"$USER\"; echo $name", "declare -i n=0; n+=1; echo $n", "for a in ls wc; do $a x; done", "declare -A m=([a]=1); echo ${m[a]}",
	} {
		verdict := p.Check(command)
		require.False(t, verdict.Refused(), "%s: %s", command, verdict.Message)
	}
}

// A variable that arithmetic or bash itself may set is not taken for the number
// that the text assigns to it.
func TestHiddenNumbers(t *testing.T) {
	p := newPolicy(t, policy.Config{Deny: []string{"kill 9"}})
	for _, command := range []string{
		"declare -i a; a=4+5; kill $a", "declare -i a=4+5; kill $a", "declare -i a=4; a+=5; kill $a", "a=1; ((a=9)); kill $a", "a=8; ((a++)); kill $a", "a=1; let a=9; kill $a",
		"a=1; let 'a = 9'; kill $a", "a=1; : $((a=9)); kill $a", "a=8; for ((a=9;;)); do kill $a; done",
	} {
		require.True(t, p.Check(command).Refused(), command)
	}
	for _, command := range []string{"a=1; ((a == 9)); kill $a", "a=8; echo $((a + 1)); kill $a", "a=8; [[ $a -eq 9 ]]; kill $a"} {
		verdict := p.Check(command)
		require.False(t, verdict.Refused(), "%s: %s", command, verdict.Message)
	}
}
