#!/bin/bash
# ev.sh SRC OUT
echo -10 > /proc/self/autogroup
export PYTHONPATH=$1
export HOME=/tmp/names/userhome XDG_CONFIG_HOME=/tmp/names/userhome/.config
mkdir -p $HOME
/work/wt/names/.venv/bin/python -c 'import anima; print(anima.__file__)' > $2.txt
/work/wt/names/.venv/bin/python /work/shared/eval/retrieval.py --json $2.json >> $2.txt 2>&1
echo done >> $2.txt
