package abi

// Diagnostic is the 32-bit diagnostic word of a heartbeat: thirteen two-bit
// readings and a valid bit.
type Diagnostic uint32

// Level is one reading of the diagnostic word.
type Level uint8

// Readings (enum nfc_diagnostic_level).
const (
	Normal Level = 0
	Sick   Level = 1
	Broken Level = 2
)

// Shifts of the readings (enum nfc_diagnostic_field).
const (
	DiagServiceNetwork = 0
	DiagMemory         = 2
	DiagPeripheral     = 4
	DiagCore           = 6
	DiagCurrent        = 8
	DiagVoltage        = 10
	DiagTemperature    = 12
	DiagZMinus         = 14
	DiagZPlus          = 16
	DiagYMinus         = 18
	DiagYPlus          = 20
	DiagXMinus         = 22
	DiagXPlus          = 24
	diagSpare          = 26 // 5 bits, zero
	diagValid          = 31
)

// Valid reports whether the device filled the word in.
func (d Diagnostic) Valid() bool { return d>>diagValid&1 == 1 }

// Reading returns the two-bit reading at one of the Diag shifts.
func (d Diagnostic) Reading(shift uint) Level { return Level(d >> shift & 3) }

// Worst returns the worst of all readings.
func (d Diagnostic) Worst() Level {
	worst := Normal
	for shift := uint(DiagServiceNetwork); shift <= DiagXPlus; shift += 2 {
		worst = max(worst, d.Reading(shift))
	}
	return worst
}
