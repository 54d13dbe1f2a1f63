package bridgetest

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// machine is one that images are for, and how it calls the relocation that adds the load address.
type machine struct {
	machine elf.Machine
	rel     uint64
}

// machines are those that a device's hosted port may run on.
var machines = []machine{
	{elf.EM_X86_64, uint64(elf.R_X86_64_RELATIVE)},
	{elf.EM_AARCH64, uint64(elf.R_AARCH64_RELATIVE)},
	{elf.EM_RISCV, uint64(elf.R_RISCV_RELATIVE)},
}

// alienABI never was the version of a device.
const alienABI = 0x7f000000

// Where the parts of the image lie; addresses are offsets.
const (
	alienDynamic = 0x100
	alienHash    = 0x1c0
	alienSymbols = 0x200
	alienStrings = 0x280
	alienRela    = 0x2c0
	alienTable   = 0x300 // two struct nfc_program
	alienAPI     = 0x340 // const struct nfc_api *nfc_api
	alienName    = 0x348
	alienEnd     = 0x350
)

// alienImage makes a shared object by hand, so that no machine needs a compiler
// for it: one program, "alien", for an ABI that never was, and the given machine.
func alienImage(machine machine) []byte {
	image := make([]byte, alienEnd)
	put := func(at int, parts ...any) {
		var b bytes.Buffer
		for _, p := range parts {
			_ = binary.Write(&b, binary.LittleEndian, p) // the parts have a fixed size
		}
		copy(image[at:], b.Bytes())
	}
	strings := "\x00nfc_program_table\x00nfc_api\x00"
	put(0, elf.Header64{
		Ident:   [elf.EI_NIDENT]byte{'\x7f', 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:    uint16(elf.ET_DYN),
		Machine: uint16(machine.machine),
		Version: uint32(elf.EV_CURRENT),
		Phoff:   64, Ehsize: 64, Phentsize: 56, Phnum: 3,
	}, []elf.Prog64{
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_W), Filesz: alienEnd, Memsz: alienEnd, Align: 0x1000},
		{Type: uint32(elf.PT_DYNAMIC), Flags: uint32(elf.PF_R | elf.PF_W), Off: alienDynamic, Vaddr: alienDynamic,
			Filesz: 9 * 16, Memsz: 9 * 16, Align: 8},
		{Type: uint32(elf.PT_GNU_STACK), Flags: uint32(elf.PF_R | elf.PF_W), Align: 16},
	})
	put(alienDynamic, []elf.Dyn64{
		{Tag: int64(elf.DT_HASH), Val: alienHash},
		{Tag: int64(elf.DT_STRTAB), Val: alienStrings},
		{Tag: int64(elf.DT_SYMTAB), Val: alienSymbols},
		{Tag: int64(elf.DT_STRSZ), Val: uint64(len(strings))},
		{Tag: int64(elf.DT_SYMENT), Val: elf.Sym64Size},
		{Tag: int64(elf.DT_RELA), Val: alienRela},
		{Tag: int64(elf.DT_RELASZ), Val: 24},
		{Tag: int64(elf.DT_RELAENT), Val: 24},
	})
	// One bucket, whose chain is all symbols.
	put(alienHash, []uint32{1, 3, 1, 0, 2, 0})
	global := elf.ST_INFO(elf.STB_GLOBAL, elf.STT_OBJECT)
	put(alienSymbols, []elf.Sym64{
		{},
		{Name: 1, Info: global, Shndx: 1, Value: alienTable, Size: 48},
		{Name: 19, Info: global, Shndx: 1, Value: alienAPI, Size: 8},
	})
	put(alienStrings, []byte(strings))
	put(alienRela, elf.Rela64{Off: alienTable + 8, Info: machine.rel, Addend: alienName})
	put(alienTable, uint32(alienABI), uint32(0))
	put(alienName, []byte("alien\x00"))
	return image
}
