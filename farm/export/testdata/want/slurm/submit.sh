#!/bin/bash
# Submits job gr-e-reboot-x-y-5fb540a2. What follows the name of this script goes to every sbatch, as in --account=lab; with --test-only Slurm
# just looks at the scripts.
cd /shared/export && mkdir -p log || exit

jobs=()
trap '[ ${#jobs[@]} -gt 0 ] && echo "submitting failed: what was submitted is cancelled" >&2 &&
	scancel "${jobs[@]}"' EXIT
options=("$@")
test=
for option in "$@"; do
	[ "$option" = --test-only ] && test=1
done

# submit SCRIPT ELEMENTS PLACE DEPENDENCY leaves the number of the job in id.
submit() {
	if [ -n "$test" ]; then
		id=0
		sbatch "${options[@]}" --array="$2" "$1" "$3"
		return
	fi
	local depend=()
	[ -n "$4" ] && depend=(--dependency="$4")
	id=$(sbatch --parsable "${depend[@]}" "${options[@]}" --array="$2" "$1" "$3") || return
	id=${id%%;*}
	jobs+=("$id")
	echo "$id $1 $2"
}

submit 01-train.sbatch 0-3%4 0 "" && a1=$id || exit
submit 02-partition.sbatch 0-0%4 0 "" && a2=$id || exit
submit 03-render.sbatch 0-2%4 0 "aftercorr:$a1" && a3=$id || exit
submit 04-eval.sbatch 0-0%4 0 "afterany:$a1" && a4=$id || exit
submit 05-convert.sbatch 0-2%4 0 "aftercorr:$a1" && a5=$id || exit
submit 06-block.sbatch 0-1%4 0 "afterok:$a2" && a6=$id || exit
submit 07-render.sbatch 0-2%4 0 "afterok:${a1}_0,afterok:${a3}_0" && a7=$id || exit
submit 07-render.sbatch 0-2%4 3 "afterok:${a1}_1,afterok:${a3}_1" && a8=$id || exit
submit 07-render.sbatch 0-2%4 6 "afterok:${a1}_2,afterok:${a3}_2" && a9=$id || exit
submit 08-merge.sbatch 0-0%4 0 "afterok:$a2,afterok:$a6" && a10=$id || exit
submit 09-encode.sbatch 0-0%4 0 "afterok:${a3}_0,afterok:$a7" && a11=$id || exit
submit 09-encode.sbatch 0-0%4 1 "afterok:${a3}_1,afterok:$a8" && a12=$id || exit
submit 09-encode.sbatch 0-0%4 2 "afterok:${a3}_2,afterok:$a9" && a13=$id || exit
trap - EXIT
