// Package subprocess makes commands that end with their context, together with every process that
// they started. It builds programs of this tree, too.
package subprocess
