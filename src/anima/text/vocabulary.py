"""Small words that tell what sort of sentence a note is, in a handful of languages. Plain data.

Promise: closed classes only (auxiliaries, adverbs of time, stative verbs, words of change and addition, names of lasting
attributes), folded and without accents; never the things a note is about. A language that is missing costs evidence, not
correctness: its lines then need more recalls. Not here: how they are weighed (lasting, junk, changes).
"""

# ruff: noqa: E501 - tables of words
from __future__ import annotations


def _set(text: str) -> frozenset[str]:
    return frozenset(text.split())


ARTICLES = _set(
    "a an the el la los las un una unos unas der die das ein eine einen le les l des du o os as um uma il lo i gli"
)
OWNERS = _set(
    "my our your his her their its mi mis tu su sus nuestro nuestra mein meine unser unsere sein ihr mon ma mes notre meu minha"
)
NAMING = _set("project proyecto projekt projet projeto team equipo server servidor user usuario owner client cliente")

BE = _set("is are be am es son esta estan ser ist sind est sont e sao esta sind bin soy isn't aren't")
STATIVE = _set(
    """has have had owns own prefers prefer likes like loves love enjoys enjoy adores hates hate dislikes dislike wants want needs need
    lives live resides works work uses use drives drive speaks speak knows know plays play drinks drink eats eat takes take wears wear
    keeps keep holds hold costs cost belongs belong means mean contains contain supports support requires require runs run stands
    studies study teaches teach goes go sleeps wakes gets opens closes expires starts begins ends meets reports manages leads stores
    believes thinks follows avoids tolerates reacts calls rents pays earns weighs measures smokes collects attends cannot can't must
    may should doesn't don't never
    tiene tienen vive viven trabaja usa usan prefiere habla hablan conduce toma toman come bebe lleva llama llaman gusta gustan odia
    cumple guarda necesita quiere paga pagan abre cierra entrena celebra dirige alquila vence empieza esta estan va van sale viene cuida
    lleva conoce juega toca estudia domina cuesta pertenece debe deben puede
    hat haben wohnt lebt arbeitet nutzt benutzt bevorzugt mag liebt hasst spricht fahrt trinkt isst nimmt tragt heisst kostet gehort
    braucht kennt spielt lernt lasst muss darf soll kann lauft liegt steht geht kommt gilt gelten bleibt sitzt leitet betreut bezahlt
    mietet trainiert feiert versichert schliesst offnet beginnt endet dauert findet macht
    ont habite vit travaille utilise prefere aime adore deteste parle conduit boit mange prend porte s'appelle coute appartient doit peut
    tem mora vive trabalha usa prefere fala dirige bebe come gosta odeia precisa deve pode"""
)
RULES = _set(
    """always never every each weekly daily monthly yearly annually usually typically generally whenever forbidden weekdays weekends
    mondays tuesdays wednesdays thursdays fridays saturdays sundays default policy rule convention standard permanently prefer
    siempre nunca cada semanal mensual normalmente lunes martes miercoles jueves viernes regla norma
    immer nie niemals jeden jede jedes wochentlich monatlich werktags grundsatz grundsatzlich regel principio montags dienstags mittwochs donnerstags freitags
    toujours jamais chaque semaine regle sempre nunca toda todo cada regra"""
)
DECISIONS = _set(
    """decided decision agreed agreement chose chosen settled adopted standardised standardized committed policy licensed
    decidimos decidido decision acordamos acuerdo elegimos beschlossen entschieden entscheidung vereinbart
    decide convenu choisi decidimos acordo"""
)
ATTRIBUTES = _set(
    """birthday anniversary allergy allergic allergies intolerant intolerance diabetic vegetarian vegan favourite favorite address email
    phone timezone nickname surname surname name named called dentist doctor accountant lawyer landlord boss manager wife husband partner
    spouse married daughter son sister brother mother father child children kids dog cat pet car bike size budget licence license
    deadline hometown nationality native born diet medication capacity contract owner maintainer preference hobby religion salary
    password-manager bank school university degree profession job language languages fluent passport blood height
    cumpleanos aniversario alergia alergica alergico favorito favorita direccion correo telefono apodo dentista medico abogada jefe jefa
    esposa marido pareja hija hijo hermana hermano madre padre perro gato coche talla presupuesto licencia dieta profesion idioma
    geburtstag jahrestag allergie allergisch lieblings adresse zahnarzt arzt chef frau mann tochter sohn schwester bruder hund katze auto
    grosse budget lizenz beruf sprache anniversaire allergique allergie prefere adresse dentiste medecin femme mari fille fils soeur frere
    chien chat voiture taille metier langue aniversario alergica alergico dentista filha filho cachorro carro"""
)

# Small words behind which a value stands, and words for sorts of notes, which say nothing of what a note is about.
TIES = _set(
    """on at with by in to from for via of under through near since as
    en con por para a de del desde hasta via sobre bei mit auf um am im zu zum zur von vom in ab seit uber fur
    chez avec sur dans pour par depuis au aux em com no na"""
)
ALWAYS = _set("always never siempre nunca immer nie niemals toujours jamais sempre")  # begin rules, and rules add up
PLACES = _set("on at in near a en sobre bei auf am im um zu chez sur dans au em no na")  # of places and times alike
SORTS = _set(
    """rule note decision policy idea info fact reminder update plan principle guideline habit subscription preference preferences
    regla nota decision politica idea dato norma regel notiz entscheidung grundsatz hinweis idee beschlossen vereinbart regle note
    no not never only kein keine nur nie sin nunca solo pas jamais"""
)

# Words that tie a sentence to its moment.
MOMENTS = _set(
    """today tonight yesterday tomorrow tmrw tmr morning's afternoon's currently meanwhile later soon earlier moment minutes ago
    hoy ayer anoche luego pronto heute gestern gerade gleich spater vorhin aujourd'hui hier demain bientot hoje ontem amanha"""
)
TOMORROWS = _set("manana morgen")  # and mornings, behind one of these:
OF_MORNINGS = _set("la las am jeden der den por guten buenos cada every")
THIS_TIME = _set(
    "this next last esta este proxima proximo pasada pasado diese diesen nachste nachsten letzte cette ce prochaine derniere esta este"
)
SPANS = _set(
    """morning afternoon evening night week weekend month monday tuesday wednesday thursday friday saturday sunday time sprint semana
    mes noche tarde manana lunes martes miercoles jueves viernes sabado domingo woche monat abend nacht morgen semaine mois soir nuit"""
)
CALENDAR = frozenset(
    word.rstrip("s")
    for word in """monday tuesday wednesday thursday friday saturday sunday january february march april may
    june july august september october november december lunes martes miercoles jueves viernes sabado domingo enero febrero marzo abril mayo
    junio julio agosto septiembre octubre noviembre diciembre montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar
    marz mai juni juli oktober dezember lundi mardi mercredi jeudi vendredi samedi dimanche""".split()
)
STAGES = _set(
    """ready done late early sick tired busy away fine ok okay back online offline green broken fixed waiting pending finished blocked
    asleep awake done stuck failing passing building running deploying loading unread again still almost already yet gone cancelled
    canceled delayed hungry bored excited half
    listo lista hecho tarde enfermo enferma cansado cansada ocupado ocupada bien otra vez todavia casi terminado terminada pendiente
    fertig spat krank mude beschaftigt wieder noch fast schon erledigt pret prete malade fatigue fatiguee encore presque deja fini"""
)
# Verbs of what happened once, in the past tense or as a bare participle at the head of a note.
PAST = _set(
    """was were had did went came saw met called phoned sent got took gave told said asked wrote read bought sold found lost made ran
    built fixed merged reviewed deployed restarted updated upgraded finished started stopped failed passed arrived left returned
    visited booked paid cooked walked slept watched cleaned tested checked created deleted removed added moved uploaded downloaded
    fetched searched looked replied answered laughed dropped picked ordered received installed rebooted spent forgot broke fell sat
    talked discussed planned prepared cancelled canceled postponed noted
    fue fueron estuvo llamo envio dijo pidio llego salio compro encontro termino empezo fallo reviso arreglo hablo comio
    war waren hatte ging kam sah traf rief schickte sagte fragte schrieb kaufte fand verlor machte lief
    etait alla vint vit appela envoya dit demanda acheta trouva foi foram ligou enviou disse pediu chegou comprou"""
)
COMING = _set("will won't gonna shall going voy va vamos wird werden wirst vais allons")
LASTING_PAST = _set(
    "born moved switched changed decided agreed adopted married joined quit retired became renamed replaced chose settled nacio mudo cambio dejo geboren umgezogen gewechselt geheiratet ne demenage change"
)
REPORTS = _set(
    "said says told tells mentioned mentions asked asks wrote writes confirmed confirms explained noted dijo dice comento menciono sagte sagt erwahnte dit"
)

# Words of change: what came before no longer holds. And of addition: it does.
CHANGES = _set(
    """now moved switched changed became instead replaced replaces renamed anymore relocated swapped upgraded migrated converted gave
    stopped quit left nowadays henceforth updated
    ahora mudo mudaron mudamos paso pasa pasamos cambia cambiamos cambiado cambiada cambio dejo actualmente reemplazo jetzt umgezogen gewechselt umgestellt geandert wechselt wechselte neuerdings zieht nunmehr stattdessen seitdem maintenant desormais demenage
    change remplace agora mudou trocou deixou"""
)
CHANGE_PHRASES = (
    "no longer",
    "not anymore",
    "nur noch",
    "only from",
    "has become",
    "these days",
    "from now on",
    "as of",
    "used to",
    "gave up",
    "instead of",
    "in place of",
    "went from",
    "any more",
    "ya no",
    "en lugar de",
    "en vez de",
    "a partir de",
    "nicht mehr",
    "ab jetzt",
    "ab sofort",
    "statt",
    "ne plus",
    "n'est plus",
    "au lieu de",
    "nao mais",
    "em vez de",
)
NEW = _set("new nuevo nueva neue neuer neues nouveau nouvelle novo nova")
ADDS = _set(
    "also too another further extra additional 2nd 3rd second third additionally besides either both likewise moreover tambien ademas otro otra segundo segunda auch ausserdem noch weitere weiterer weiteres weiteren zweite zweiter zweites zweiten dritte dritter drittes dritten plus tercer tercero tercera otros otras aussi egalement autre tambem outro outra"
)
EVERY = _set("every each jeden jede jedes cada chaque todo toda")
COUNTED = _set(
    "floor half quarter week row lane door piso planta semana puerta stock etage woche etage semaine"
)  # have numbers, not fellows
ADD_PHRASES = ("as well", "in addition", "on top of", "one more")
# Beginnings of words for what one may have several of.
SEVERAL = (
    "allerg",
    "alerg",
    "intoler",
    "tolerat",
    "daughter",
    "tocht",
    "brother",
    "sister",
    "herman",
    "amig",
    "freund",
    "enjoy",
    "dislik",
    "collect",
    "instrument",
    "hobb",
    "interest",
    "fluent",
    "sprach",
    "mascot",
    "schwest",
    "bruder",
)
SEVERAL_WORDS = _set(
    """react reacts speak speaks habla hablan domina dominan spricht parle fala dog dogs cat cats pet pets perro perra perros gato gata gatos
    hund hunde katze katzen kater chien chat chats child children kid kids son sons grandson hija hijo hijas hijos sohn kind kinder fille
    fils filha filho friend friends like likes love loves adora adore adores hate hates gusta gustan odia mag liebt aime play plays spielt
    juega know knows visit visits skill skills avoid avoids cannot can't never nunca nie owns fan accepts supports"""
)


def is_several(word: str) -> bool:
    """Whether a word is for what one may have several of."""
    return word in SEVERAL_WORDS or word.startswith(SEVERAL)


ADVERBS_OF_STAGE = _set("halfway again still already yet almost todavia casi wieder noch schon encore deja")
LOOSEST = _set(
    "has have had is are was es esta son tiene hat ist sind a est tem gets"
)  # of these an object says nothing of the attribute
LOOSE = _set(  # verbs of which one subject has many objects, none replacing another by itself
    """prefers prefer uses use wants want has have takes take needs need keeps eats drinks is are was prefiere usa quiere tiene toma es
    esta hat nutzt benutzt braucht ist a utilise veut est prefere tem"""
)
PLAIN = (
    BE | LOOSE | _set("runs goes takes happens stands lies lauft liegt steht geht findet gilt va corre queda marche")
)  # say little by themselves
KIN = _set(  # people who are named by what they are to somebody: "Ana's sister is …" says something of the sister
    """wife husband partner spouse daughter son sister brother mother father child mom mum dad grandma grandpa aunt uncle cousin boss manager
    landlord neighbour neighbor friend flatmate colleague assistant teacher esposa marido pareja hija hijo hermana hermano madre padre jefe
    jefa vecino vecina frau mann tochter sohn schwester bruder mutter vater chef nachbar femme mari fille fils soeur frere mere pere"""
)
# Attributes that several verbs and nouns speak of; words of one row can replace each other's sentences.
SAME_ATTRIBUTE = tuple(
    _set(row)
    for row in (
        "lives live living resides moved relocated based home address flat apartment house rents vive mudo casa direccion wohnt lebt umgezogen adresse habite demenage mora mudou",
        "works work job profession employed joined role position trabaja trabajo profesion oficio arbeitet beruf travaille metier trabalha",
        "born birthday birth cumpleanos cumple nacio geboren geburtstag ne anniversaire",
        "phone mobile handset telefono movil handy telefon telephone",
        "car drives vehicle coche conduce auto fahrt voiture conduit carro",
        "vegetarian vegan diet eats gluten pescatarian dieta come isst mange",
        "married wife husband spouse partner divorced engaged esposa marido pareja frau mann verheiratet femme mari",
        "dentist dentista zahnarzt dentiste",
        "doctor medico arzt medecin",
        "database storage stores db datos",
        "standup meeting meets reunion",
        "budget spend presupuesto",
        "staging host server servidor",
        "invoice invoices invoiced billing factura",
        "reachable reach available availability",
    )
)
