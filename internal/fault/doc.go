// Package fault touches memory of a caller that may not be there: not mapped, protected, or of a
// file that was cut short. Elsewhere a touch of such memory ends the process.
package fault
