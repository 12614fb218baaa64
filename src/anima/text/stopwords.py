"""Small words of several languages, folded (lower case, no accents), that say little about what a text is about.

Promise: plain data. Negations ("not", "never", "sin", "ohne") are not among them: they can decide what is meant.
Not here: when a list applies (words).
"""

from __future__ import annotations


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS: dict[str, frozenset[str]] = {
    # Short on purpose: people ask what somebody likes, got or did after something, and May is a month.
    "en": _set(
        "a about all am an and any are as at be been but by can could did do does for from had has have he her him his"
        " how i if in into is it its just me more my of on or our she should so some than that the their them then"
        " there these they this those to up was we were what when where which who whom whose why will with would you"
        " your im ive youre youve theyre thats whats whos hes shes weve dont doesnt didnt isnt wasnt"
    ),
    "es": _set(
        "a al algo ante antes asi aun bajo cada como con cual cuando cuanto de del desde donde dos el ella ellas ellos"
        " en entre era eran es esa ese eso esta estaba estan este esto estos fue fueron ha habia han hasta hay la las"
        " le les lo los mas me mi mis mucho muy o os otra otro para pero por porque que quien se sea ser si sido sobre"
        " son soy su sus tambien te tiene tienen todo todos tu tus un una uno unos y ya yo"
    ),
    "pt": _set(
        "a ao aos as ate com como da das de dela dele do dos e ela elas ele eles em entre era essa esse esta este eu"
        " foi foram ha isso isto ja la lhe mais mas me meu minha muito na nas no nos o onde os ou para pela pelo por"
        " porque qual quando quem que se sem ser seu sua tambem te tem teu tinha tua tudo um uma voce"
    ),
    "fr": _set(
        "a alors au aux avec ce ces cet cette ceux comme dans de des dont du elle elles en entre est et etait ete etre"
        " eu fait ici il ils je la le les leur leurs lui ma mais me meme mes moi mon nos notre nous on ont ou par pas"
        " plus pour qu quand que quel quelle qui sa se ses si son sont sous sur ta te tes toi ton tous tout tu un une"
        " vos votre vous y"
    ),
    "de": _set(
        "aber als am an auch auf aus bei bin bis bist da damit dann das dass dem den der des die dies diese dieser dir"
        " doch du ein eine einem einen einer eines er es fur hab habe haben hat hatte ich ihm ihn ihr ihre im in ist"
        " ja kann man mein meine mich mir mit nach noch nun nur ob oder schon sein seine sich sie sind so soll uber"
        " um und uns unser unter vom von vor wann war waren was weil wenn wer werden wie wir wird wo wurde zu zum zur"
    ),
    "it": _set(
        "a ad ai al alla alle anche che chi ci come con cosa da dal dalla dei del della delle di dove e ed era essere"
        " fa gli ha hai hanno ho i il in io l la le lei li lo loro lui ma mi mia mio nel nella nei noi o per perche piu"
        " quale quando quello questa questo se sei si sia sono su sua sulla suo ti tra tu tuo tutti tutto un una uno"
        " va vi voi"
    ),
    "nl": _set(
        "aan al als bij dan dat de deze die dit doen door dus een en er ge had heb hebben heeft hem het hier hij hoe"
        " hun ik in is ja je jij kan kunnen maar me meer men met mij mijn na naar nog nu of om omdat onder ons ook op"
        " over te tot u uit uw van veel voor waar want waren was wat we wel werd wie wij wil worden zal ze zich zij"
        " zijn zo zou"
    ),
}

# Who says "I" speaks of their own life. Folded; words that mean something else in another language are left out.
FIRST_PERSON: frozenset[str] = _set(
    "i im ive my me mine myself we our us ours yo mi mis mio ich mein meine meinen meiner mir mich je mon mes moi eu"
    " meu minha io ik mijn mij"
)
FIRST_PERSON_DENSE: tuple[str, ...] = ("我", "私", "僕", "俺", "나는", "저는", "내가", "ฉัน", "ผม")
