// Package subprocess makes commands that end with their context, together with every process that
// they started.
package subprocess
