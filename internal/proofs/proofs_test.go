package proofs

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRead(t *testing.T) {
	rules, wrong := Read("**S1. A.** x\n**S2. B.** y\n| S1 | `a/b` `p/q:TestX` |\n| S2 | `TestLie` `a/c-1.5` |\n")
	require.Empty(t, wrong)
	require.Equal(t, []Rule{
		{"S1", []Test{{"", "a/b"}, {"p/q", "TestX"}}},
		{"S2", []Test{{"internal/scripted", "TestLie"}, {"", "a/c-1.5"}}},
	}, rules)
	require.Equal(t, []Run{{"internal/sim", "TestConformance/a/b"}, {"internal/kdev", "TestConformance/a/b"}}, rules[0].Tests[0].Runs())
	require.Equal(t, []Run{{"p/q", "TestX"}}, rules[0].Tests[1].Runs())
	require.Equal(t, "p/q:TestX", rules[0].Tests[1].String())
	require.Equal(t, "TestLie", rules[1].Tests[0].String())
	rules, wrong = Read("**S1. A.**\n**S1a. B.**\n**S1b. C.**\n**S2. D.**\n| S1 | `a/b` |\n| S1a | `a/c` |\n| S1b | `a/d` |\n| S2 | `a/e` |\n")
	require.Empty(t, wrong)
	require.Len(t, rules, 4)
	require.Equal(t, Rule{"S1b", []Test{{"", "a/d"}}}, rules[2])
}

func TestReadFindsWhatIsWrong(t *testing.T) {
	for text, says := range map[string]string{
		"":                             "no rules",
		"**S1. A.**\n":                 "rule S1 names no test",
		"**S2. A.**\n| S2 | `a/b` |\n": "rule S2 stands after rule S0",
		"**S1. A.**\n| S1 | `a/b` |\n| S2 | `a/b` |\n":               "no rule S2",
		"**S1. A.**\n**S1b. B.**\n| S1 | `a/b` |\n| S1b | `a/b` |\n": "rule S1b stands after rule S1",
		"**S1. A.**\n**S1a. B.**\n| S1 | `a/b` |\n":                  "rule S1a names no test",
		"**S1. A.**\n| S1 | `a/b` |\n| S1 | `a/b` |\n":               "two rows",
	} {
		_, wrong := Read(text)
		require.Len(t, wrong, 1, text)
		require.Contains(t, wrong[0], says)
	}
}
