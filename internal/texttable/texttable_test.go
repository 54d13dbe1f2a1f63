package texttable

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func written(t *Table) string {
	var b strings.Builder
	t.Write(&b)
	return b.String()
}

func TestNumbers(t *testing.T) {
	n := Numbers("size", "µs", "note")
	n.Add("64 KiB", "1.5", "", "dropped")
	n.Add("8")
	n.Add("1 MiB", "22.25", "ä")
	require.Equal(t, "size       µs  note\n64 KiB    1.5\n8\n1 MiB   22.25     ä\n", written(n))
}

// TestPaint: colours take no space, and neither titles nor padding are coloured.
func TestPaint(t *testing.T) {
	n := &Table{Columns: []Column{{"A", false}, {"B", true}}, Rows: [][]string{{"a", "bbb"}, {"", "b"}},
		Paint: func(row, column int, cell string) string { return "<" + cell + ">" }}
	require.Equal(t, "A    B\n<a>  <bbb>\n     <b>\n", written(n))
	n.NoHead, n.Paint = true, nil
	require.Equal(t, "a  bbb\n     b\n", written(n))
}
